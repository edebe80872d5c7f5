"""Caches: what is told of providers' caches, as data.

Enters: what a message costs once a cache has lapsed, and what was seen that a profile does not fit. Leaves: plain
values, and lines for a file of facts. May not enter: anything that is read, sent or stored.
"""
