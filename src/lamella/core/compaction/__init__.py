"""Compaction: how text gets smaller without being lost.

Enters: a state, the turn to be asked in it, and rules. Leaves: a plan, and the state once its receipt is applied.
May not enter: model calls, the store. What is pinned or cannot be fetched again is never made smaller, and what people
said leaves the request only, never the log.
"""
