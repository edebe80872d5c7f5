"""Counting: what text, pictures, messages and whole requests weigh in tokens."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from lamella.core.artifacts.model import Image, ToolDefinition
from lamella.core.messages.model import Message
from lamella.core.text.content import canonical_json

_MERGES_LEFT = " \t\n\r\v\f/\x1c\x1d\x1e\x1f\x85\xa0"


class Measure(Struct, frozen=True, kw_only=True, eq=False):
    """How a family of models counts: plain callables and the overhead of its chat format.

    ``encode`` gives tokens to compare texts by; ``factor`` turns their number into this family's. Models that do not
    see are sent words in place of pictures, and count those. ``refuse`` says why a picture cannot go along with those
    of a request, and nothing where it can. Measures of one name count alike, and are the same.
    """

    name: str
    count: Callable[[str], int]
    encode: Callable[[str], Sequence[int]]
    count_image: Callable[[int, int], int]
    per_message: int
    per_request: int
    factor: float
    sees: bool = True
    refuse: Callable[[Sequence[Image], Image], str] = lambda _there, _image: ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def weigh(messages: Sequence[Message], tools: Sequence[ToolDefinition], measure: Measure) -> int:
    """Everything a request bills: text, images, tool definitions and the overhead of its messages."""
    said = weigh_messages(messages, measure) + measure.per_request
    return said + (count_tools(tools, measure.count) if tools else 0)


def weigh_messages(messages: Sequence[Message], measure: Measure) -> int:
    """What messages weigh within a request: text, images and the overhead of each."""
    content = sum([message.tokens for message in messages])
    images = sum([count_images(message.images, measure) for message in messages if message.images])
    return content + images + measure.per_message * len(messages)


def count_pieces(pieces: Sequence[str], count: Callable[[str], int]) -> int:
    """The tokens of the joined text, counted piece by piece so that known pieces are not counted again.

    Byte-pair vocabularies split text by a pattern before they merge, and no pattern in use joins a line break to a
    following character that is neither white space nor a slash. Pieces that meet at such a place are counted apart;
    all others are joined first, so the sum is exact.
    """
    total = 0
    pending = ""
    for piece in pieces:
        if not piece:
            continue
        if pending and not meets_cleanly(pending, piece):
            pending += piece
            continue
        total += count(pending) if pending else 0
        pending = piece
    return total + (count(pending) if pending else 0)


def count_images(images: Sequence[Image], measure: Measure) -> int:
    """What pictures weigh."""
    return sum(measure.count_image(image.width, image.height) for image in images)


def count_tools(tools: Sequence[ToolDefinition], count: Callable[[str], int]) -> int:
    """Tool definitions as providers bill them: as the JSON that describes them."""
    return sum(count(render_definition(tool)) for tool in tools)


def render_definition(tool: ToolDefinition) -> str:
    """A tool definition as JSON with sorted keys."""
    head = canonical_json({"description": tool.description, "name": tool.name})
    return f'{head[:-1]},"parameters":{tool.parameters}}}'


def meets_cleanly(left: str, right: str) -> bool:
    """Whether two adjoining texts tokenise apart: a line break, then neither white space nor a slash."""
    return bool(left and right) and left[-1] == "\n" and right[0] not in _MERGES_LEFT and not right[0].isspace()
