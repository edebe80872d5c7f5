"""Reading a request as a model would: which blocks stand where, and what text they say together."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.invariants.texts import readable
from tests.unit.patching import apply_diff

from lamella import Message

_HEAD = r"(?:<(?:title|path|url|id|lines|query|name|arguments)>[^\n]*\n)*"
_UPDATE = r"(?P<update><update>[^\n]*</update>\n)?"
_BODY = r"<(?P<part>content|preview|diff|output)>\n(?P<body>.*?)\n</(?P=part)>\n"
_BLOCK = re.compile(rf"<(?P<tag>[a-z_]+)>\n(?P<head>{_HEAD}){_UPDATE}{_BODY}</(?P=tag)>", re.DOTALL)
_FIELD = re.compile(r"<(\w+)>([^\n]*)</\1>\n")
_ESCAPE = re.compile(r"&(?:(amp|lt|gt)|#(\d+));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block as it stands in a message; ``at`` is where it starts there."""

    message: int
    at: int
    tag: str
    id: str
    fields: dict[str, str]
    part: str
    body: str
    is_update: bool

    @property
    def is_copy(self) -> bool:
        """Whether it says the whole text and replaces nothing."""
        return self.part in ("content", "output") and not self.is_update


def find_blocks(messages: Sequence[Message]) -> dict[str, list[Block]]:
    """Every block of a request by the id it names, in the order in which they are read."""
    found: dict[str, list[Block]] = {}
    for index, message in enumerate(messages):
        for block in read_blocks(message.text, message=index):
            found.setdefault(block.id, []).append(block)
    return found


def read_blocks(text: str, *, message: int = 0) -> list[Block]:
    """The blocks of one text."""
    blocks = []
    for match in _BLOCK.finditer(text):
        fields = {name: unescaped(value) for name, value in _FIELD.findall(match["head"])}
        name = fields.get("id") or fields.get("path") or fields.get("url") or ""
        blocks.append(
            Block(
                message=message,
                at=match.start(),
                tag=match["tag"],
                id=name,
                fields=fields,
                part=match["part"],
                body=match["body"],
                is_update=match["update"] is not None,
            )
        )
    return blocks


def unescaped(value: str) -> str:
    return _ESCAPE.sub(lambda match: _NAMED[match[1]] if match[1] else chr(int(match[2])), value)


def held_text(blocks: Iterable[Block]) -> str | None:
    """The text that a copy and its updates amount to; nothing where there is only an outline."""
    text: str | None = None
    for block in blocks:
        match block.part:
            case "diff":
                assert text is not None, f"a diff of {block.id} has no copy above it"
                text = apply_diff(text, readable(block.body))
            case "preview":
                text = None
            case _:
                text = readable(block.body)
    return text
