"""Keys of conversations: made by chance, so that no two of them, in whatever stores, are ever the same."""

from secrets import token_hex

# 80 bits: of a million million keys one pair would be the same with a chance of less than one in two.
_BYTES = 10


def make_key(name: str) -> str:
    """A key that nobody has chosen and nobody has had, whatever the conversation is called."""
    return token_hex(_BYTES)
