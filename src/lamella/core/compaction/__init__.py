"""Compaction: how text gets smaller without being lost.

Enters: artifacts and budgets. Leaves: smaller forms, each naming the way back to the whole.
May not enter: model calls, the store. Text that cannot be fetched again never enters.
"""
