"""Text to measure with: notes of four kilobytes, each different, the same in every run."""

from random import Random

from lamella import Note

NOTE_BYTES = 4_000
_WORDS = (
    *("layer", "prefix", "cache", "token", "note", "turn", "reply", "library", "stable", "volatile", "budget"),
    *("window", "context", "message", "model", "reads", "writes", "keeps", "moves", "folds", "names", "counts"),
    *("sends", "never", "once", "again", "while", "after", "before", "the", "a", "of", "in", "to", "and"),
)


def make_text(seed: int, size: int = NOTE_BYTES) -> str:
    """English-like markdown of a given size."""
    words = Random(seed)
    parts: list[str] = [f"# Note {seed}\n\n"]
    length = len(parts[0])
    while length < size:
        sentence = " ".join(words.choice(_WORDS) for _ in range(12)).capitalize() + ".\n"
        parts.append(sentence)
        length += len(sentence)
    return "".join(parts)[:size]


def make_notes(turn: int, count: int) -> list[Note]:
    """A turn's new notes."""
    return [Note(path=f"notes/{turn:05}/{i:03}.md", text=make_text(turn * 1_000 + i)) for i in range(count)]
