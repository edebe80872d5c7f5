"""All of a text of which less stands: it may still have to be read, and hardly anybody asks for it."""

from collections.abc import Mapping, Sequence
from typing import cast

# Whole texts by the ids of their messages. Those of a snapshot are one such mapping, and read once somebody asks it.
WholeTexts = Mapping[str, str]


def read_texts(names: Sequence[str], texts: Sequence[str | WholeTexts]) -> Sequence[str]:
    """The texts of messages, some of which may still have to be read."""
    if set(map(type, texts)) <= {str}:
        # Thousands of them whenever a conversation is opened, and hardly ever one that was not read.
        return cast(Sequence[str], texts)
    return [text if isinstance(text, str) else text[name] for name, text in zip(names, texts, strict=True)]
