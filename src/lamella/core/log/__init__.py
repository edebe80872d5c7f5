"""The log: the events of a conversation, and the tree of messages that they fold to.

- ``events``: one class per kind of event, with its encoding.
- ``log``: folds events one after another.
- ``tree``, ``turn_records``, ``branch``: messages by id, and the turns of a branch with their contents.
- ``turn``, ``call``, ``receipts``: the values that turns, model calls and compactions are read as.
- ``compactions``: compactions and workflow stages of a branch.
- ``snapshots``: the folded state as bytes.

The package uses no store, no clock and no random ids. The log never changes what the user wrote.
"""
