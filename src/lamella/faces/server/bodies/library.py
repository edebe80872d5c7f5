"""The library as it is told: what was attached, and what waits for the next turn."""

from lamella.faces.server.bodies.shape import ConversationBody, Count, JsonBody, MarkedBody, Moment, Money


class ArtifactJson(JsonBody):
    """Something that was attached, as it stands now."""

    id: str
    kind: str
    title: str
    form: str
    tokens: Count
    in_working_set: bool
    cached: bool | None
    age_turns: Count
    saves: int
    waits: bool
    policy: str | None
    via: str | None
    left_out: list[str]


class WaitingArtifactJson(JsonBody):
    """Something that goes with the next turn."""

    id: str
    kind: str
    title: str
    form: str
    tokens: int | None


class WaitingJson(JsonBody):
    """What waits for the next turn."""

    attach: list[WaitingArtifactJson]
    detach: list[str]
    drop: list[str]
    pin: list[str]
    unpin: list[str]
    rules: list[str]
    ended_rules: list[str]


class KeepAliveJson(JsonBody):
    """What it takes to send the last request once more before the cache lapses."""

    due_at: Moment
    tokens: Count
    cost: Money
    chance: float


class ColdCacheJson(JsonBody):
    """A cache that lapsed or is about to: what the next message costs as it is, and folded first."""

    lapsed: bool
    lapses_at: Moment
    tokens: Count
    cost: Money
    folded_tokens: Count
    folded_cost: Money
    folds: bool
    keep: KeepAliveJson | None


class LibraryJson(ConversationBody):
    """Everything attached so far, what waits, and whether the cache is cold; null while it is warm."""

    artifacts: list[ArtifactJson]
    waiting: WaitingJson
    cold: ColdCacheJson | None


class KeptCacheJson(ConversationBody):
    """Whether the last request was sent again, and whether the cache is cold."""

    sent: bool
    cold: ColdCacheJson | None


class NextRequestJson(JsonBody):
    """What the next request weighs and costs, and how much more than before."""

    tokens: Count
    limit: int | None
    more_tokens: int
    cost: Money
    more_cost: Money


class CommandsJson(ConversationBody):
    """What waits for the next turn after a command, and what that comes to."""

    waiting: WaitingJson
    said: list[str]
    next: NextRequestJson


class HeldMemoryJson(ConversationBody):
    """The memory as the prompt of a conversation has it; empty where it has none."""

    text: str


class NoteNamesJson(MarkedBody):
    """Paths of the vault that have the word in them."""

    query: str
    names: list[str]


class NoteHitJson(JsonBody):
    """A passage of the vault."""

    path: str
    heading: str
    text: str
    score: float
    why: str
    id: str
    title: str
    excerpt: str


class UnreadFileJson(JsonBody):
    """A file that could not be searched, and why."""

    path: str
    why: str


class NoteHitsJson(MarkedBody):
    """Passages of the vault, best first."""

    query: str
    hits: list[NoteHitJson]
    unread: list[UnreadFileJson]


class FactJson(JsonBody):
    """Something that is remembered."""

    id: str
    kind: str
    text: str
    chat: str | None


class NumberedFactJson(FactJson):
    """Something that is remembered, with the number that names it."""

    number: int


class MemoryJson(MarkedBody):
    """All that is remembered."""

    folder: str
    facts: list[NumberedFactJson]
