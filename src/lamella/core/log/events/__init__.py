"""Events: everything that can happen to a conversation, one class per kind, with its encoding.

``message`` has questions and tool rounds, ``artifact`` attachments and commands, ``compaction`` compactions and
workflow stages, ``call`` model calls, and ``kinds`` the list of all kinds and the stored records.

Records have canonical JSON as bodies. An event refers to contents by hash and never contains them. Event bodies are
parsed in this package only. It does not import the message tree, stores or clocks.
"""
