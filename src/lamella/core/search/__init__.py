"""Full-text search over the originals of a conversation, and ranking of texts for a question.

``search`` parses queries and scores passages, ``index`` is the inverted index of a branch, and ``language`` splits and
normalises words. The package uses no store and no model. Erased content is never a passage.
"""
