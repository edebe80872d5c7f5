"""Snapshots of a log: what its events come to, as bytes, and messages in columns."""
