"""History: a conversation as a fold over its turns.

Enters: one turn at a time, and its reply. Leaves: the state that the next turn is built from, and message ids.
May not enter: stores, clocks, random ids. What the user wrote is never changed here, only what is shown of it.
"""
