"""The cache ledger: what each turn cost, how much of it was cached, and what changed the prefix.

``cache_profile`` simulates caches, and ``entry`` records turns and calls. The package uses no clock and no price
table: times, prices and cache profiles are passed in as values and callables.
"""
