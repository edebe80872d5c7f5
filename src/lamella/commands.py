"""Commands of ours as they are told to people: what is printed can be pasted into a shell as it is."""

from collections.abc import Iterator, Mapping
from shlex import quote

# What Python makes of bytes in a path that are no UTF-8: each is a character of its own.
_FIRST_BYTE, _LAST_BYTE, _BYTES = 0xDC80, 0xDCFF, 0xDC00


def write_command(command: str, *names: str, **options: object) -> str:
    """A command with what it is about, and with those options that have a value; one that is true is a flag.

    A name that begins with a dash would be read as an option: such names come last, after `--`.
    """
    words, given = ["lamella", *command.split()], list(_list_options(options))
    dashed = any(name.startswith("-") for name in names)
    told = [*words, *given, "--", *names] if dashed else [*words, *names, *given]
    return " ".join(map(quote_word, told))


def quote_word(word: str) -> str:
    """A word as a shell reads it; it is one line, and neither acts on a terminal nor ends a command in backticks."""
    if word.isprintable() and "`" not in word:
        return quote(word)
    # Shells that people type in read this form.
    return "$'" + "".join(map(_escape, word)) + "'"


def _list_options(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        if value is True:
            yield f"--{name}"
        elif value is not None and str(value).startswith("-"):
            yield f"--{name}={value}"
        elif value is not None:
            yield from (f"--{name}", str(value))


def _escape(letter: str) -> str:
    code = ord(letter)
    if letter in "\\'":
        return f"\\{letter}"
    if letter.isprintable() and letter != "`":
        return letter
    if _FIRST_BYTE <= code <= _LAST_BYTE:
        return f"\\x{code - _BYTES:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
