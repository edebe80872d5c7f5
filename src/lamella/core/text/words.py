"""Words: a text cut short between them, and the title that a conversation has by its first question."""

# Characters of a title: what a line of a list has room for.
_TITLE = 60


def cut_words(text: str, room: int) -> str:
    """The beginning of a text, in at most so many characters; it is cut between words unless the first is too long."""
    words = " ".join(text.split())
    if len(words) <= room:
        return words
    kept = words[:room].rpartition(" ")[0] or words[: room - 1]
    return kept.rstrip(".,;:") + "…"


def make_title(question: str) -> str:
    """The title of a conversation that nobody gave one: its first question, as far as it fits a line."""
    return cut_words(question, _TITLE)
