"""Runs: turns on their way, each for as many as follow it, and one at a time in a conversation.

Enters: what sends a turn, keys of conversations, places in answers. Leaves: events with places, live or told again
from the store; who is answering where; an end for what nobody follows any more.
May not enter: HTTP, tokens, what prompts hold.
"""
