"""The worked examples of a design for writing papers in stages, as conversations of given sizes.

Four characters are a token there, and messages count nothing beside their text. Messages are numbered from 1, and every
second is a reply.
"""

from collections.abc import Mapping, Sequence

from tests.unit.core.compaction.stories import NOW, QUARTERS, Fit, Story

from lamella.core.compaction.summaries import SummaryResult
from lamella.core.log.events.compaction import StageEvent, WorkflowStageAction
from lamella.core.log.turn import SystemParts
from lamella.core.values import replace
from lamella.core.workflow.session import WorkflowSession, build_session, with_completed_stages
from lamella.core.workflow.system_part import build_workflow_system_parts
from lamella.wiring import build_prompt_settings as rules_of
from lamella.wiring import load_settings, open_adapters
from lamella.wiring.workflows import get_workflow

WINDOW = 128_000
RULES = rules_of(load_settings({"profile": "seed-paper"}), open_adapters(None))
PAPER = RULES.budget
WORKFLOW = get_workflow("paper", language="id")
# Each stage with its last message; where the examples end one with a question, it ends with the answer before.
ENDS = {
    "gagasan": 18,
    "topik": 34,
    "outline": 48,
    "abstrak": 72,
    "pendahuluan": 96,
    "tinjauan_literatur": 120,
    "metodologi": 144,
    "hasil": 170,
    "diskusi": 196,
}


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
    done: int = 0,
) -> Story:
    """A conversation of so many messages and tokens, of which so many stages of the paper are ``done``.

    The messages numbered in ``short`` are the acknowledgement ``yes``; those of a range share its tokens, and all
    others what is left. Without a stage it is a general chat.
    """
    part = 0 if not done else QUARTERS.count(_parts(_session(done)).workflow)
    weights = _count_tokens(messages, tokens - part, short=short, yes=yes, ranges=ranges or {})
    words = frozenset({yes.casefold()}) if yes else frozenset[str]()
    story = Story(
        replace(
            RULES, tokenizer=QUARTERS, compaction_config=replace(RULES.compaction_config, extra_acknowledgements=words)
        )
    )
    places = [0, *list(ENDS.values())[:done]] if done else []
    for number in range(1, messages, 2):
        asked, answered = (yes if n in short else _text(n, weights[n]) for n in (number, number + 1))
        begun = number - 1 in places
        system = _parts(_session(places.index(number - 1))) if begun else None
        story.say(asked, answered, replace(NOW, system=system))
    if done:
        story.rules = with_completed_stages(story.rules, _session(done), story.path)
    return story


def _session(done: int) -> WorkflowSession:
    """The session of a paper of which so many stages are approved."""
    events = [(0, StageEvent(action=WorkflowStageAction.NEW, stage="gagasan", workflow=WORKFLOW))]
    for stage, (name, end) in zip(WORKFLOW.stages, list(ENDS.items())[:done], strict=False):
        assert stage.id == name
        given = dict.fromkeys(stage.required, f"what was written down for {name}")
        decision = f"what was decided for {name}, in about two hundred characters at most"
        events += [
            (end, StageEvent(action=WorkflowStageAction.DATA, stage=name, fields=given)),
            (end, StageEvent(action=WorkflowStageAction.SUBMIT, stage=name)),
            (end, StageEvent(action=WorkflowStageAction.APPROVE, stage=name, decision=decision)),
        ]
    session = build_session(events)
    assert session is not None
    assert session.stage_index == done
    return session


def _parts(session: WorkflowSession) -> SystemParts:
    part = build_workflow_system_parts(session)
    return SystemParts(
        workflow=part["workflow"],
        workflow_brief=part["workflow_brief"],
        workflow_detail=part["workflow_detail"],
    )


def _count_tokens(
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


def send(story: Story, summary: str | None = None) -> Fit:
    """The next turn, with whatever the chain has to do for it; every summary asked for is the same text."""
    summaries: dict[str, SummaryResult] = {}
    while True:
        known = summaries if summary is not None else None
        fitted = story.fit(summaries=known)
        if not fitted.needs:
            return fitted
        summaries.update((request.key, SummaryResult(text=summary or "")) for request in fitted.needs)


def said(fitted: Fit) -> list[str]:
    """The ids of the earlier messages that are still sent, each word of them."""
    strip = fitted.envelope.layers[3]
    return [segment.id for segment in strip.segments if segment.kind in ("user", "reply")]


def share(tokens: int) -> int:
    """Tokens in percent of the window, as the examples round them."""
    return round(100 * tokens / WINDOW)
