"""Caches: what a cold one makes dearer, and what was seen of one that its profile does not say.

Enters: values of the ledger. Leaves: what JSON can say.
May not enter: files, stores, the engine; words for people.
"""
