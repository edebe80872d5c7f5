"""The worked examples of a design for writing papers in stages, as conversations: so many messages, so many tokens.

Four characters are a token there, and messages weigh nothing beside their text. Messages are numbered from 1, and every
second is a reply.
"""

from collections.abc import Mapping, Sequence

from tests.unit.core.compaction.talking import NOW, QUARTERS, Fit, Story, make_rules

from lamella.core.compaction.asking import SummaryText
from lamella.core.compaction.stages import StageRange
from lamella.core.values import replace
from lamella.wiring import load_settings, open_world
from lamella.wiring import make_rules as rules_of

WINDOW = 128_000
RULES = rules_of(load_settings({"profile": "seed-paper"}), open_world(None))
PAPER = RULES.budget


def acknowledgement(tokens: int) -> str:
    """An acknowledgement of so many tokens: nothing but "yes", as often as it takes."""
    return ("yes " * tokens)[: 4 * tokens - 1]


def write(
    messages: int,
    tokens: int,
    *,
    short: Sequence[int] = (),
    yes: str = "",
    ranges: Mapping[tuple[int, int], int] | None = None,
) -> Story:
    """A conversation of so many messages and tokens.

    The messages numbered in ``short`` are the acknowledgement ``yes``; those of a range share its tokens, and all
    others what is left.
    """
    weights = _weigh(messages, tokens, short=short, yes=yes, ranges=ranges or {})
    words = frozenset({yes.casefold()}) if yes else frozenset[str]()
    story = Story(make_rules(replace(RULES.chain, words=words), budget=PAPER))
    for number in range(1, messages, 2):
        asked, answered = (yes if n in short else _text(n, weights[n]) for n in (number, number + 1))
        story.say(asked, answered)
    return story


def _weigh(
    messages: int, tokens: int, *, short: Sequence[int], yes: str, ranges: Mapping[tuple[int, int], int]
) -> dict[int, int]:
    weights = dict.fromkeys(short, QUARTERS.count(yes))
    for (first, last), total in ranges.items():
        inside = [n for n in range(first, last + 1) if n not in weights]
        weights.update(_share(inside, total))
    others = [n for n in range(1, messages + 1) if n not in weights]
    asked_now = QUARTERS.count(NOW.text)
    return weights | _share(others, tokens - sum(weights.values()) - asked_now)


def _share(numbers: Sequence[int], tokens: int) -> dict[int, int]:
    each, more = divmod(tokens, len(numbers))
    return {number: each + (place < more) for place, number in enumerate(numbers)}


def _text(number: int, tokens: int) -> str:
    return (f"Message {number}: " + "words of it, " * tokens)[: 4 * tokens - 1] + "."


def with_stages(story: Story, stages: Sequence[tuple[str, int, int]]) -> Story:
    """The same story with stages that are done, given by the numbers of their first and last messages."""
    ranges = tuple(
        StageRange(
            stage=name,
            label=name.title(),
            decision=f"what was decided for {name}, in about two hundred characters at most",
            first=story.path[first - 1],
            last=story.path[last - 1],
        )
        for name, first, last in stages
    )
    story.rules = replace(story.rules, chain=replace(story.rules.chain, stages=ranges))
    return story


def send(story: Story, summary: str | None = None) -> Fit:
    """The next turn, with whatever the chain has to do for it; every summary asked for is the same text."""
    summaries: dict[str, SummaryText] = {}
    while True:
        known = summaries if summary is not None else None
        fitted = story.fit(summaries=known)
        if not fitted.needs:
            return fitted
        summaries.update((need.key, SummaryText(text=summary or "")) for need in fitted.needs)


def said(fitted: Fit) -> list[str]:
    """The ids of the earlier messages that are still sent, each word of them."""
    strip = fitted.envelope.layers[3]
    return [segment.id for segment in strip.segments if segment.kind in ("user", "reply")]


def share(tokens: int) -> int:
    """Tokens in percent of the window, as the examples round them."""
    return round(100 * tokens / WINDOW)
