"""Keeping: conversations that last, as events in a store, and what can be done with them as wholes.

Enters: a store, and what a dialogue asks and answers. Leaves: chats that go on where they were left, copies, findings.
May not enter: providers. What is kept is what was said, not how it is sent.
"""
