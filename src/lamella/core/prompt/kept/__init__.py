"""Kept: a state as bytes, so that opening a long conversation need not tell all of it once more.

Enters: a state between two turns, and what was said until then. Leaves: bytes without those words and without contents,
and the same state again where they are given. May not enter: a state that would be read as another one.
"""
