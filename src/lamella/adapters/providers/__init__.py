"""Providers: what each provider's cache does, and what it charges. Facts are dated data.

Enters: a model's name. Leaves: cache profiles and prices. May not enter: facts without a date or a source.
"""
