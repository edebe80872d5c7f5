"""Dialogue: one conversation walked turn by turn, from what was typed to what would be sent.

Enters: what was asked and answered, and adapters behind ports. Leaves: turns with their ledger entries, and proposals.
May not enter: stores. A journal writes down what happens, or nobody does.
"""
