"""Doors for clients that exist: they speak the wire of a provider, and get the engine.

Enters: requests as the SDKs of OpenAI and Anthropic send them. Leaves: answers as those APIs give them.
May not enter: which conversation is meant and what is a document in it, which the engine knows.
"""
