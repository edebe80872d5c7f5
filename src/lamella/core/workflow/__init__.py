"""Workflows: work in stages, with approval and rewind.

``session`` folds stage events into the current state, and checks actions. ``references`` has references as data and the
citations of a text. ``document`` builds the finished work, and ``system_part`` the workflow part of L1. ``phrases`` has
what Lamella itself writes, by language. The package uses no files, model calls, store or clock.
"""
