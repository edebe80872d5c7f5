"""Workflow: staged work as data. Stages, approval, rewind and the digest live here.

Enters: a workflow file's stages and the history. Leaves: stage ranges, digests, instructions as values.
May not enter: model calls, the store, clocks.
"""
