"""Retrieval: finding passages in a vault.

Enters: a question and filters. Leaves: passages with their sources. May not enter: prompt text.
"""
