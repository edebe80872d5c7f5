"""The pure part of Lamella: functions over frozen values, without side effects.

- ``artifacts``: the pieces of context that users attach.
- ``log``: the events of a conversation and the message tree they fold to.
- ``prompt``: builds the request of each turn, in five layers.
- ``layout``: decides where each artifact goes in the next request.
- ``compaction``: reduces a prompt to a token target.
- ``ledger``: what each turn cost and how much of it was cached.
- ``search``, ``text``, ``workflow``: full-text search, text functions, and work in stages.
- ``messages`` and ``budget``: requests and replies as values, and token counts.

Equal input gives equal bytes. The core does no I/O and uses no clock, randomness, environment, port or provider name;
callers pass values and plain callables such as ``count(text) -> int``.
"""
