"""Runners: the ways of answering, a file each, and their registry.

Enters: a question, and the engine. Leaves: the events of its answer.
May not enter: prompts made by hand. Every runner gets its messages from the same envelope.
"""
