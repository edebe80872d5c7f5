"""Token counts of requests, and the token limits that requests must satisfy.

``Tokenizer`` counts texts and images for a family of models. ``count_request_tokens`` counts a whole request, and
``TokenBudget`` has the limits: the hard limit, the target of a compaction, and the share at which it starts. A low
target removes earlier messages; it must not reduce what the current turn may attach.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

from msgspec import Struct

from lamella.core.artifacts.model import ImageData, ToolDefinition
from lamella.core.messages import Message
from lamella.core.text.content import canonical_json
from lamella.errors import SettingError

# Characters that a byte-pair tokenizer may merge with a line break before them.
_LEFT_JOINING_CHARS = " \t\n\r\v\f/\x1c\x1d\x1e\x1f\x85\xa0"


class Tokenizer(Struct, frozen=True, kw_only=True, eq=False):
    """A tokenizer for a family of models: plain callables and the overhead of its chat format.

    ``encode`` returns tokens for comparing texts; their number times ``count_factor`` approximates the family's count.
    Models without ``supports_images`` get a line of text instead of each image, and that text is counted.
    ``image_rejection`` returns why an image cannot be sent along with the other images of a request, or an empty string
    if it can. Two tokenizers with the same name count alike and are equal.
    """

    name: str
    count: Callable[[str], int]
    encode: Callable[[str], Sequence[int]]
    count_image: Callable[[int, int], int]
    tokens_per_message: int
    tokens_per_request: int
    count_factor: float
    supports_images: bool = True
    image_rejection: Callable[[Sequence[ImageData], ImageData], str] = lambda _others, _image: ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


# C-level getters: each request has thousands of messages, which several counts go through.
_get_tokens, _get_images = attrgetter("tokens"), attrgetter("images")


def count_request_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition], tokenizer: Tokenizer) -> int:
    """Count all tokens that a request bills: text, images, tool definitions and message overhead."""
    tokens = count_messages_tokens(messages, tokenizer) + tokenizer.tokens_per_request
    return tokens + (count_tools_tokens(tools, tokenizer.count) if tools else 0)


def count_messages_tokens(messages: Sequence[Message], tokenizer: Tokenizer) -> int:
    """Count the tokens of messages within a request: text, images and the overhead per message."""
    content: int = sum(map(_get_tokens, messages))
    pictures = filter(None, map(_get_images, messages))
    return (
        content
        + sum([count_images_tokens(images, tokenizer) for images in pictures])
        + tokenizer.tokens_per_message * len(messages)
    )


def count_pieces_tokens(pieces: Sequence[str], count: Callable[[str], int]) -> int:
    """Count the tokens of the joined text piece by piece, so that known pieces need no new count.

    Byte-pair tokenizers split text by a pattern before they merge. No pattern in use joins a line break to a following
    character that is neither white space nor a slash. Pieces that meet at such a boundary are counted separately. All
    others are joined first, so the sum is exact.
    """
    total = 0
    pending = ""
    for piece in pieces:
        if not piece:
            continue
        if pending and not can_be_counted_separately(pending, piece):
            pending += piece
            continue
        total += count(pending) if pending else 0
        pending = piece
    return total + (count(pending) if pending else 0)


def count_images_tokens(images: Sequence[ImageData], tokenizer: Tokenizer) -> int:
    """Count the tokens of images."""
    return sum(tokenizer.count_image(image.width, image.height) for image in images)


def count_tools_tokens(tools: Sequence[ToolDefinition], count: Callable[[str], int]) -> int:
    """Count the tokens of tool definitions as providers bill them: as their JSON."""
    return sum(count(tool_definition_json(tool)) for tool in tools)


def tool_definition_json(tool: ToolDefinition) -> str:
    """Render a tool definition as JSON with sorted keys."""
    # ``parameters`` is canonical JSON already, and its key sorts last, so it is inserted without parsing it.
    head = canonical_json({"description": tool.description, "name": tool.name})
    return f'{head[:-1]},"parameters":{tool.parameters}}}'


def can_be_counted_separately(left: str, right: str) -> bool:
    """Return whether two adjoining texts tokenise separately.

    They do if the first ends with a line break and the second starts with neither white space nor a slash.
    """
    return bool(left and right) and left[-1] == "\n" and right[0] not in _LEFT_JOINING_CHARS and not right[0].isspace()


# How much of the window a request may use, and when Lamella warns or compacts.
_CURRENT_TURN_SHARE = 0.5
# How far below the trigger compaction stops removing messages of the user.
_SOFT_DISTANCE = 0.10


class TokenBudget(Struct, frozen=True, kw_only=True, dict=True):
    """The token limits of a request.

    ``warn``, ``trigger`` and ``hard`` are shares of ``limit``, in ascending order. ``target`` is below ``trigger``; it
    may be below or above ``warn``. Compaction reduces attachments, tool results and replies to ``target``, and messages
    of the user only to ``soft``. Raises ``SettingError`` if the values are out of order or the reserve fills the
    window.
    """

    window: int = 128_000
    reserve: int = 4_096
    warn: float = 0.60
    target: float = 0.40
    trigger: float = 0.85
    hard: float = 0.95

    def __post_init__(self) -> None:
        if self.window <= 0 or self.reserve < 0 or self.reserve >= self.window:
            raise SettingError(
                f"A window of {self.window:,} tokens with a reserve of {self.reserve:,} leaves no room.",
                hint="Choose window > reserve >= 0.",
            )
        order = (0.0, self.warn, self.trigger, self.hard)
        if not all(low < high for low, high in pairwise(order)) or self.hard > 1 or not 0 < self.target < self.trigger:
            raise SettingError(
                f"Thresholds are not in order: warn {self.warn}, target {self.target}, trigger {self.trigger}, "
                f"hard {self.hard}.",
                hint="Choose 0 < warn < trigger < hard <= 1, for example 0.60, 0.85, 0.95, and target below trigger.",
            )

    @property
    def current_turn_share(self) -> float:
        """The share of the limit that the current turn may use without being cut.

        It is half of the limit, or the target if that is larger.
        """
        return max(self.target, _CURRENT_TURN_SHARE)

    @property
    def current_turn_limit(self) -> int:
        """The number of tokens that the current turn may use without being cut."""
        return int(self.current_turn_share * self.limit)

    @property
    def soft_target(self) -> float:
        """The share of the limit down to which compaction removes messages of the user."""
        return max(self.target, self.trigger - _SOFT_DISTANCE)

    @cached_property
    def limit(self) -> int:
        """The maximum size of a request in tokens: the window minus the reserve for the reply."""
        return self.window - self.reserve


def list_budget_warnings(total: int, budget: TokenBudget) -> tuple[str, ...]:
    """Return the warnings for a request of ``total`` tokens."""
    if total <= budget.warn * budget.limit:
        return ()
    return (f"The request uses {total:,} of {budget.limit:,} tokens, {total / budget.limit:.0%} of what fits.",)


def exceeds_share(total: int, share: float, budget: TokenBudget) -> bool:
    """Return whether a request exceeds the given share of the limit."""
    return total > share * budget.limit


def should_compact(total: int, budget: TokenBudget, *, last_compacted_total: int | None) -> bool:
    """Return whether compaction should run automatically.

    It runs above the trigger. ``last_compacted_total`` is the size that the last active compaction reached, or None if
    there was none. Until the request outgrows that size by half of the distance between trigger and ``soft``, or passes
    the hard threshold, another compaction would change the prefix for little gain.
    """
    if not exceeds_share(total, budget.trigger, budget):
        return False
    if last_compacted_total is None or exceeds_share(total, budget.hard, budget):
        return True
    return total - last_compacted_total >= (budget.trigger - budget.soft_target) / 2 * budget.limit


def validate_share(share: float) -> float:
    """Return the requested target share of the limit as a float, or raise ``SettingError`` if it is not in (0, 1]."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise SettingError(f"{share!r} is no share of the window.", hint="Give a number above 0 and up to 1: 0.5.")
    return float(share)
