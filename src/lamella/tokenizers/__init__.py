"""Token counting without a network: exact if the vocabulary is known, otherwise a marked estimate.

``counter`` counts for every model family, ``o200k`` with OpenAI's vocabulary, ``gguf`` with the vocabulary of a local
model. ``weights`` finds and verifies the files of local models. The package uses no network, and loads neither engines
nor weights. Counts are cached by content hash.
"""
