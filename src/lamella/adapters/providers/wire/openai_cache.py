"""OpenAI's cache, the same in both of its APIs: a key per conversation, one implicit breakpoint, explicit ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from lamella.adapters.providers.wire.body import Body, find_chosen, tail_messages
from lamella.adapters.providers.wire.fields import as_json
from lamella.adapters.providers.wire.marks import Block, Ends, MarkRules, plan_marks
from lamella.core.messages.request import Request
from lamella.profiles import Lifetime, ModelProfile, choose_lifetime

_LONGEST_KEY = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a request's content; a part that cannot be marked is only weighed."""

    body: Body
    markable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLayout:
    """The parts in order, and the last one of each message by its place, of the instructions, and of what is fixed."""

    parts: Sequence[Part]
    ends: dict[int, int]
    fixed: int | None
    library: int | None


def takes_marks(profile: ModelProfile) -> bool:
    """Whether parts may be marked. Claude behind a gateway has breakpoints too, and they are not of this API."""
    return bool(profile.breakpoints) and profile.provider != "anthropic"


def plan_cache(request: Request, profile: ModelProfile, laid: PartLayout, *, lifetimes: Sequence[Lifetime]) -> Body:
    """The fields that steer the cache; marks are set on the parts."""
    key = {"prompt_cache_key": name_cache(request.conversation)} if profile.keyed and request.conversation else {}
    if not takes_marks(profile):
        return key
    # The provider marks the last message by itself. Where that one will not stay, the write would be paid in vain.
    implicit = request.settled.messages in (None, len(request.messages))
    tail, previous = (laid.ends.get(place) if place is not None else None for place in tail_messages(request))
    marks = plan_marks(
        [Block(weight=len(as_json(part.body).encode()), markable=part.markable) for part in laid.parts],
        Ends(
            fixed=laid.fixed,
            library=laid.library,
            tail=None if implicit else tail,
            previous=None if implicit else previous,
        ),
        rules=MarkRules(limit=profile.breakpoints - implicit, lookback=profile.lookback, minimum=profile.cache.minimum),
        chosen=find_chosen(request, laid.ends),
    )
    for position in marks:
        laid.parts[position].body["prompt_cache_breakpoint"] = {"mode": "explicit"}
    lifetime = choose_lifetime(request.pause, tuple(lifetimes))
    options: Body = {"mode": "implicit" if implicit else "explicit"}
    return key | {"prompt_cache_options": options | ({"ttl": lifetime.name} if lifetime else {})}


def name_cache(conversation: str) -> str:
    """A conversation's name as a key of at most 64 characters; a longer one by its hash."""
    if len(conversation) <= _LONGEST_KEY:
        return conversation
    return sha256(conversation.encode()).hexdigest()
