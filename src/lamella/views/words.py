"""Words, named here for faces, which do not import the core."""

from lamella.core.text.words import cut_words

__all__ = ["cut_words"]
