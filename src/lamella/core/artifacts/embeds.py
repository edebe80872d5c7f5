"""Images that a note embeds."""

import re

from lamella.core.text.fences import walk_lines

_IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".avif", ".heic", ".tif", ".tiff")
# Possessive, and stopping at the next bracket: a text of nothing but openings is read once, not again from each.
_WIKI = re.compile(r"!\[\[([^\[\]\n|#]++)(?:[|#][^\[\]\n]*+)?\]\]")
_MARKDOWN = re.compile(r"!\[[^\[\]\n]*+\]\(\s*+(?:<([^<>\n]++)>|((?:[^()\s]|\([^()\s]*+\))++))(?:\s[^()\n]*+)?\)")

# As many characters as the smallest icon has; what is shorter is an example of one.
_PASTED = re.compile(r"data:(image/[\w.+-]{1,40})[^,\s()<>\"']{0,80},([A-Za-z0-9+/=_%-]{64,})")


def embedded_images(text: str) -> tuple[str, ...]:
    """The targets of a note's embedded images, in order, each once; code fences do not embed."""
    if "![" not in text:
        return ()
    found: dict[str, None] = {}
    for line, is_code in walk_lines(text):
        if is_code:
            continue
        for match in _WIKI.finditer(line):
            if _names_image(match.group(1).strip()):
                found.setdefault(match.group(1).strip())
        for match in _MARKDOWN.finditer(line):
            target = match.group(1) or match.group(2)
            if _names_image(target) or target.startswith(("http://", "https://", "data:image/")):
                found.setdefault(target)
    return tuple(found)


def fold_pasted(text: str) -> str:
    """A text with the pictures that were pasted into it as letters named by their size."""
    return _PASTED.sub(lambda pasted: f"{pasted[1]} of {len(pasted[2]):,} characters, left out", text)


def _names_image(target: str) -> bool:
    return target.lower().partition("?")[0].endswith(_IMAGE_ENDINGS)
