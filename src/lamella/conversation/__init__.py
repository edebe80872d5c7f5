"""Conversations over the ports, with everything that the CLI, the server and Python can do.

- ``engine``: ``Engine`` opens, lists and searches the conversations of a store.
- ``conversation``: the conversation classes of the Python API.
- ``stored``, ``memory_conversation``: the objects behind them, with a store and in memory.
- ``log``, ``checkpoints``, ``past_turns``: reading and writing the event log.
- ``turn``, ``turn_reader``, ``commands``, ``library``: requested and built turns, and what they attach.
- ``turn_runner``, ``tool_executor``, ``stream``: sending a turn to a model, with tools and retries.
- ``runner_context``, ``runs``: what a runner gets, and runs that several clients can follow.
- ``cache_ledger``, ``expired_cache``, ``compaction``: costs, keep-alives and fitting into the window.

The package reaches stores, providers and sources only through ``ports``, and writes no prompt text of its own: every
request comes from the same envelope.
"""
