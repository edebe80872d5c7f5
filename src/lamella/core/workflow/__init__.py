"""Workflows: work in stages, with approval and rewind.

``session`` folds stage events into the current state, and checks actions. ``export`` renders the finished work as
Markdown and the workflow part of L1. The package uses no files, model calls, store or clock.
"""
