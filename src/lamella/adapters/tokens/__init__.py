"""Tokens: counting offline, exactly where the vocabulary is known, else as an estimate that says so.

Enters: text, and the vocabularies at the head of GGUF files. Leaves: counts, memoised by content hash.
May not enter: the network, engines, weights.
"""
