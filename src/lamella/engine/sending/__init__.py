"""Sending: one turn to a model and back, with retries and rounds of tools.

Enters: a turn, a provider, tools. Leaves: events as they happen, and the answer written down.
May not enter: decisions about prompts.
"""
