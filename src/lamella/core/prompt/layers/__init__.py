"""The five layers of a prompt: which artifact is placed where, and in what form.

``model`` has the layer types and L1, ``history`` has L4, and the other modules have one layer each. Token counts come
from a ``count`` callable. The package uses no I/O, clock, randomness or provider name.
"""
