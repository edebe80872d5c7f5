"""Runners: the ways to answer a question, and the registry that names them.

- ``agent``: the runners ``chat``, ``agent`` and ``staged``.
- ``vault_qa``, ``plus``, ``project``: answers from notes, planned lookups, and project folders.
- ``query_planning``, ``tool_rounds``, ``citations``, ``write_blocks``: what runners share.
- ``code_questions``, ``code_requests``: questions about code.

A runner gets a ``RunRequest`` and yields the events of its answer. Runners write no prompts by hand: every message
comes from the envelope that the conversation builds.
"""
