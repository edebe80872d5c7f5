"""Engine: conversations over the ports, and all that any face can do with them.

Enters: what was asked, and adapters behind ports. Leaves: built turns with their ledger entries, events on the way.
May not enter: prompt text of its own. Every request comes from the same envelope.
"""
