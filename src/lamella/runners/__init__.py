"""Runners: one turn walked through the ports, from what people typed to what a model would be sent.

Enters: a turn as typed, and adapters behind ports. Leaves: built turns with their ledger entries.
May not enter: prompt text of their own. Every runner gets its messages from the same envelope.
"""
