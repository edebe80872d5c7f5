"""Stages: work that goes on in stages, in conversations that last and in those that do not.

Enters: what is done about a stage, the stage events of a branch. Leaves: events to keep, where the work stands, the
part of the system prompt that says so, rules of compaction that know the stages.
May not enter: files, stores, model calls; what stages mean is the core's.
"""
