"""Core: everything Lamella decides, as pure functions over frozen values.

Enters: values, and plain callables such as ``count(text) -> int``.
Leaves: artifacts, layers, envelopes, messages, ledgers; equal input gives equal bytes.
May not enter: I/O, clocks, randomness, the environment, ports, provider names.
"""
