"""Workflow: work in stages as data. Stages, approval, rewind, the digest, and what all of it says in L1.

Enters: a workflow's stages, the stage events of a branch, how many messages each came after. Leaves: the session that
they fold to, the part of L1, ranges for compaction, the finished work as markdown.
May not enter: files, model calls, the store, clocks.
"""
