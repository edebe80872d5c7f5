"""Compatibility endpoints: clients of the OpenAI and Anthropic APIs use the engine without changes.

Enters: requests as the SDKs of OpenAI and Anthropic send them.
Leaves: responses in the format of those APIs.
May not enter: the decisions which conversation a request belongs to and which of its texts are documents. The engine
makes them.
"""
