"""Conversations as they are told: in lists, whole, and what was done with one."""

from typing import Literal

from lamella.faces.server.bodies.answers import ErrorDetailJson
from lamella.faces.server.bodies.compaction import ReceiptJson
from lamella.faces.server.bodies.shape import ConversationBody, Count, JsonBody, MarkedBody, Moment, NamedBody


class ListedChatJson(JsonBody):
    """A conversation in a list."""

    conversation: str
    name: str
    title: str
    created: Moment
    updated: Moment
    events: Count


class ChatListJson(MarkedBody):
    """Conversations, the last changed first; ``total`` counts those that are not shown, too."""

    total: Count
    chats: list[ListedChatJson]


class BegunChatJson(NamedBody):
    """A conversation that was begun or renamed."""

    title: str


class ErasedChatJson(NamedBody):
    """A conversation of which only a tombstone is left."""

    erased: Literal[True]


class MovedChatJson(NamedBody):
    """A conversation that goes on from another message, its head."""

    head: str


class StoppedChatJson(MovedChatJson):
    """A conversation in which nobody is answered any more; ``stopped`` says whether somebody was."""

    stopped: bool


class ImportedChatJson(NamedBody):
    """What became of an archive."""

    outcome: str
    warnings: list[str]


class SaidHitJson(JsonBody):
    """A message that holds the words."""

    conversation: str
    name: str
    title: str
    message: str
    role: str
    excerpt: str


class SaidHitsJson(MarkedBody):
    """Messages that hold the words, and what is wrong with a conversation that could not be searched."""

    hits: list[SaidHitJson]
    error: ErrorDetailJson | None = None


class SaidReplyJson(JsonBody):
    """A reply."""

    message: str
    at: Moment
    text: str


class SaidCallJson(JsonBody):
    """A tool that the model called, and what came back; null while it is waited for."""

    name: str
    arguments: str
    output: str | None
    failed: bool


class SaidRoundJson(JsonBody):
    """What the model said and called before its answer."""

    text: str
    calls: list[SaidCallJson]


class CitedSourceJson(JsonBody):
    """What a number in a reply points to."""

    number: int
    id: str
    title: str
    path: str
    place: str
    text: str | None


class SaidJson(JsonBody):
    """A question, the ids of what came with it, and its reply, if there is one."""

    message: str
    at: Moment
    text: str
    attached: list[str]
    reply: SaidReplyJson | None


class SaidTurnJson(SaidJson):
    """A turn as it was said, with rounds of tools and sources."""

    rounds: list[SaidRoundJson]
    sources: list[CitedSourceJson]


class SaidBranchJson(JsonBody):
    """A branch by its last message."""

    branch: str
    active: bool
    turns: Count
    last: SaidJson | None


class CompactionMarkJson(JsonBody):
    """Where a conversation was compacted, or a compaction was undone."""

    message: str
    receipt: ReceiptJson | None
    undone: bool
    voided: list[str]


class UnderwayJson(JsonBody):
    """The turn that is under way; ``run`` is null of one in another process."""

    message: str | None
    run: str | None


class ChatJson(NamedBody):
    """A conversation: what was said on a branch, all branches, and what is under way."""

    title: str
    head: str
    branches: list[SaidBranchJson]
    running: UnderwayJson | None
    turns: list[SaidTurnJson]
    compactions: list[CompactionMarkJson]


class TranscriptJson(JsonBody):
    """A transcript, as docs/transcript.md has it."""

    lamella: Literal[1]
    conversation: str
    turns: list[dict[str, object]]


class RuleJson(JsonBody):
    """A standing wish of the user, and the message that it was said in; null before that is asked."""

    id: str
    text: str
    message: str | None
    turn: int
    by: Literal["found", "user"]


class RuleListJson(ConversationBody):
    """The rules that hold, the newest last."""

    rules: list[RuleJson]


class AddedRuleJson(RuleListJson):
    """The rules that hold, and the one that was added."""

    added: RuleJson


class RemovedRuleJson(RuleListJson):
    """The rules that still hold, and the one that was removed."""

    removed: RuleJson
