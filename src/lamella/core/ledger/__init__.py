"""Ledger: what each turn cost, what of it was cached, and what moved the prefix.

Enters: envelopes, cache profiles as values, a plain ``price``. Leaves: predictions, money, comparisons.
May not enter: clocks and price tables; times and prices come in as values and callables.
"""
