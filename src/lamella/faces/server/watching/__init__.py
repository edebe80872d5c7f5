"""Watching: what whoever runs the server sees of it: lines of a log, metrics, traces.

Enters: what a request came to, the events of an answer. Leaves: numbers and names. May not enter: keys, tokens; texts,
but for the beginning of an answer where the setting allows that.
"""
