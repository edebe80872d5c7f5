"""Events: what can happen to a conversation, one class per kind, and how each is written down and read back.

Enters: turns, replies, receipts and whatever else happened; records of any age. Leaves: typed events, and records whose
bodies are canonical JSON. An event names contents by hash and never holds them.
May not enter: the tree that events fold to, stores, clocks. A body is parsed here and nowhere else.
"""
