"""Stores that keep conversations: one implementation per database, all checked by one conformance suite.

- ``open_store``: opens the store that a URL names.
- ``memory``, ``sqlite``, ``postgresql``: the databases.
- ``sql_store``, ``sql_schema``, ``append``: the store logic, written once for all SQL databases.
- ``commit_queue``: shares commits between threads.
- ``hash_chain``, ``verification``: hashes of events, and checks of a whole store.
- ``sharing``: owners, locks and the table that processes share.

A store returns events in order, exactly as they were acknowledged. It makes no decisions about prompts.
"""
