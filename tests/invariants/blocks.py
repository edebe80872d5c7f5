"""Reads a request as a model would: which blocks it has, and the text that they give together."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.invariants.texts import readable
from tests.unit.patching import apply_diff

from lamella import Message
from lamella.core.artifacts.kinds import make_tool_result

_HEAD = r"(?:<(?:title|path|url|id|lines|query|name|arguments)>[^\n]*\n)*"
_UPDATE = r"(?P<update><update>[^\n]*</update>\n)?"
_BODY = r"<(?P<part>content|preview|diff|output)>\n(?P<body>.*?)\n</(?P=part)>\n"
_BLOCK = re.compile(rf"<(?P<tag>[a-z_]+)>\n(?P<head>{_HEAD}){_UPDATE}{_BODY}</(?P=tag)>", re.DOTALL)
_RESULT = re.compile(r"<tool_result>(?P<name>\w+)\((?P<arguments>[^\n]*)\)\n(?P<body>.*?)\n</tool_result>", re.DOTALL)
_FIELD = re.compile(r"<(\w+)>([^\n]*)</\1>\n")
_ESCAPE = re.compile(r"&(?:(amp|lt|gt)|#(\d+));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block as it is in a message; ``at`` is where it starts there."""

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
    results = list(_read_results(text, message=message))
    # What a tool gave may hold what looks like a block and is none.
    rest = _RESULT.sub(lambda match: " " * len(match[0]), text)
    blocks = []
    for match in _BLOCK.finditer(rest):
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
    return sorted([*blocks, *results], key=lambda block: block.at)


def _read_results(text: str, *, message: int) -> Iterator[Block]:
    """What tools gave. A block says its call, and the two of them are its id."""
    for match in _RESULT.finditer(text):
        name, arguments, body = match["name"], unescaped(match["arguments"]) or "{}", match["body"]
        if not body.startswith("<left_out>"):
            made = make_tool_result(name, arguments=json.loads(arguments), output=readable(body))
            yield Block(
                message=message,
                at=match.start(),
                tag="tool_result",
                id=made.id,
                fields={"name": name, "arguments": arguments},
                part="output",
                body=body,
                is_update=False,
            )


def unescaped(value: str) -> str:
    return _ESCAPE.sub(lambda match: _NAMED[match[1]] if match[1] else chr(int(match[2])), value)


def block_text(blocks: Iterable[Block]) -> str | None:
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
