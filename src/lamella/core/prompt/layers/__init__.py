"""Layers: decide where each artifact stands in the prompt, and in what form.

Enters: frozen artifacts, and what already stands in the request. Leaves: frozen layers, L1 to L5, a file each.
May not enter: I/O, clocks, randomness, provider names. Tokens come in through a plain ``count``.
"""
