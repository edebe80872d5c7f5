"""Snapshots: what the events of a log come to, as bytes, with its messages in columns.

Enters: a log, or bytes that one was written as. Leaves: bytes, those that are kept apart from them, and the log again.
May not enter: stores, and bytes of another format.
"""
