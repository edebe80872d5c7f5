"""Summaries of the oldest turns: which of them one would cover, and whether it may stand in for them.

Unless whole turns are asked for, it stands in for their replies: what the user typed stays where it is.
"""

from collections.abc import Sequence
from itertools import accumulate

from lamella.core.budget.counting import Measure
from lamella.core.compaction.asking import Summaries, SummaryNeed, SummaryText, ask_alone, ask_live, key_of, texts_of
from lamella.core.compaction.checking import check_summary
from lamella.core.compaction.draft import Draft
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Skip, Step, StepName
from lamella.core.prompt.laws import legal_cuts
from lamella.core.prompt.layers.model import LayerId, SegmentKind, make_layer
from lamella.core.prompt.layers.opening import NOTHING_LEFT_OUT, StandIn, render_stand_in
from lamella.core.prompt.layers.strip import Exchange, list_strip
from lamella.core.text.exact import list_exact
from lamella.core.text.said.replies import stub_reply

_NO_WORDS = render_stand_in(SegmentKind.SUMMARY, "", covers="")


def propose_summary(draft: Draft, summaries: Summaries | None) -> Step | SummaryNeed | Skip | None:
    """The oldest turns as one summary, the need of one, why there is none, or nothing to summarise.

    A summary that stands already is told anew in it: otherwise they would add up until nothing else fits. Where even
    one of no words would free nothing, as of replies that are outlines already, there is nothing to summarise.
    """
    oldest = _oldest(draft)
    if len(oldest) < draft.chain.summary.turns:
        return None
    if summaries is None:
        return Skip(name=StepName.SUMMARY, why="no summariser is given")
    if draft.chain.summary.whole_turns:
        oldest = oldest[: _count_legal(draft, len(oldest))]
    told = _told(draft)
    if not draft.chain.summary.whole_turns and _find_gain(draft, oldest, told) <= 0:
        return None
    key = key_of(oldest, [block.content for block in told])
    if key not in summaries:
        return _need(draft, oldest, told, key=key)
    answer = summaries[key]
    why = answer.why or _find_fault(draft, oldest, told, text=answer.text)
    if why is not None:
        return Skip(name=StepName.SUMMARY, why=why)
    text, content = _render(draft, oldest, told, answer=answer)
    return Step(name=StepName.SUMMARY, removed=_ids(draft, oldest), text=text, content=content)


def _find_gain(draft: Draft, oldest: Sequence[Exchange], told: Sequence[StandIn]) -> int:
    """What a summary of no words would free: one that says something frees less, and nobody needs to be asked."""
    freed = sum(_weigh_all(oldest, draft)) + sum(block.tokens for block in told)
    return freed - draft.measure.count(_NO_WORDS)


def _told(draft: Draft) -> Sequence[StandIn]:
    return [block for block in draft.state.talk.opening.blocks if block.kind is SegmentKind.SUMMARY]


def _oldest(draft: Draft) -> Sequence[Exchange]:
    """As many of the oldest turns as free what is too much, within what a summariser reads."""
    rules = draft.chain.summary
    needed = draft.excess + rules.writes + rules.exact
    free = _list_free(draft)
    turns = free if rules.whole_turns else _find_replied(free)
    weights = list(accumulate(_weigh_all(turns, draft)))
    read = accumulate(_weigh_originals(turns, draft.measure))
    readable = sum(1 for weight in read if weight <= rules.reads)
    enough = next((index + 1 for index, weight in enumerate(weights) if weight >= needed), len(weights))
    return turns[: min(readable, max(enough, rules.turns))]


def _find_replied(exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
    """The turns in which more than a line is left of what was replied."""
    replies = [(one, [reply.segment for reply in (one.reply, *one.joined)]) for one in exchanges]
    return [one for one, every in replies if any(it.text for it in every if it.form is not Form.HANDLE)]


def _weigh_all(exchanges: Sequence[Exchange], draft: Draft) -> list[int]:
    """What a summary of each turn would free."""
    if draft.chain.summary.whole_turns:
        return [exchange.said_tokens for exchange in exchanges]
    count = draft.measure.count
    replies = [[(one.segment, one.turn or turn.number + 1) for one in (turn.reply, *turn.joined)] for turn in exchanges]
    # Where nothing was replied, no line says that it is left out.
    return [sum([one.tokens - count(stub_reply(turn)) for one, turn in every if one.text]) for every in replies]


def _weigh_originals(exchanges: Sequence[Exchange], measure: Measure) -> list[int]:
    """What all that was said in each turn weighs."""
    weigh = measure.count
    said = [(one.user, one.reply, *one.joined) for one in exchanges]
    weights = [
        [one.segment.tokens if one.whole is None else weigh(one.whole[one.segment.id]) for one in every]
        for every in said
    ]
    return [sum(every) for every in weights]


def _list_free(draft: Draft) -> Sequence[Exchange]:
    """The turns that a summary may cover; of work in stages, those of the stage that is being worked on.

    The others leave with their stage, for which the digest stands, or were given up with it.
    """
    current = draft.current
    if current is None:
        return draft.free
    return [one for one in draft.free if all(said.id in current for said in one.said)]


def _count_legal(draft: Draft, turns: int) -> int:
    """At most so many of the oldest turns, and only as many as leave the strip where its laws let it be cut."""
    segments = list_strip(draft.state.talk, first=0, opening=NOTHING_LEFT_OUT)
    allowed = legal_cuts(make_layer(LayerId.L4, segments=segments, pieces=(), tokens=0))
    ends = {segment.id: index for index, segment in enumerate(segments, start=1)}
    legal = [n for n, one in enumerate(_list_free(draft)[:turns], start=1) if ends[one.replies[-1].id] in allowed]
    return legal[-1] if legal else 0


def _need(draft: Draft, oldest: Sequence[Exchange], told: Sequence[StandIn], *, key: str) -> SummaryNeed:
    before = [block.content for block in told]
    rules, measure = draft.chain.summary, draft.measure
    live = ask_live(oldest, state=draft.state, measure=measure, rules=rules, window=draft.window)
    alone = ask_alone(oldest, measure=measure, rules=rules, writes=rules.writes, told=before)
    return SummaryNeed(key=key, messages=live or alone, max_tokens=rules.writes, alone=alone if live else ())


def _find_fault(draft: Draft, oldest: Sequence[Exchange], told: Sequence[StandIn], *, text: str) -> str | None:
    return check_summary(
        text,
        replaced=[*(block.content for block in told), *texts_of(oldest)],
        users=[*(block.content for block in told), *(exchange.user.segment.text for exchange in oldest)],
        tokens=draft.measure.count(text),
        replaced_tokens=sum(block.tokens for block in told) + sum(_weigh_originals(oldest, draft.measure)),
        max_tokens=draft.chain.summary.writes,
        translated=bool(draft.chain.summary.language),
    )


def _render(
    draft: Draft, oldest: Sequence[Exchange], told: Sequence[StandIn], *, answer: SummaryText
) -> tuple[str, str]:
    """The block that stands in for turns, and what it tells."""
    cap = draft.chain.summary.exact
    texts = [*(block.content for block in told), *texts_of(oldest)]
    exact = list_exact(texts, cap=cap, count=draft.measure.count)
    more = " and of what was told of those before" if told else ""
    by = f", summarised by {answer.by}" if answer.by else ""
    what = "earlier turns" if draft.chain.summary.whole_turns else "earlier replies"
    covers = f"{len(oldest)} {what}{more}{by}"
    block = render_stand_in(SegmentKind.SUMMARY, answer.text, covers=covers, exact=exact)
    return block, "\n".join(part for part in (answer.text.strip(), exact) if part)


def _ids(draft: Draft, exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    whole = draft.chain.summary.whole_turns
    said = (
        [one for exchange in exchanges for one in (exchange.reply, *exchange.joined)]
        if not whole
        else [one for exchange in exchanges for one in (exchange.user, exchange.reply, *exchange.joined)]
    )
    return tuple([one.segment.id for one in said])
