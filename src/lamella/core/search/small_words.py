"""Small words: what nearly every text has, and says nothing of what one is about."""

# Words that nearly every text of a language has, and hardly one of the other; and those that questions have besides.
ENGLISH = frozenset(
    ["the", "of", "and", "to", "in", "is", "for", "that", "with", "are", "on", "as", "this", "be", "or"]
)
INDONESIAN = frozenset(
    ["yang", "dan", "dengan", "untuk", "ini", "itu", "dari", "pada", "adalah", "tidak", "akan", "dalam", "ke", "di"]
)
# fmt: off
_COMMON = ENGLISH | INDONESIAN | frozenset([
    "a", "an", "it", "its", "by", "from", "at", "about", "what", "which", "who", "when", "where", "why", "how", "do",
    "does", "did", "can", "we", "i", "you", "my", "our", "your", "was", "were", "has", "have", "had", "not", "there",
    "apa", "bagaimana", "siapa", "kapan", "mana", "mengapa", "ada", "oleh", "sudah", "telah", "juga", "atau", "saya",
    "kami", "kita", "mereka",
])
# fmt: on


def is_common(word: str) -> bool:
    """Whether a word says nothing of what a text is about."""
    return word in _COMMON
