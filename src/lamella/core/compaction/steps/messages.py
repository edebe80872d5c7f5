"""Messages out of the talk: acknowledgements, replies to their outlines, and what is most expendable.

What the user typed goes last of all: it is the smaller part of most talk, and holds most of what is asked for later.
"""

from collections.abc import Iterator, Sequence

from lamella.core.compaction.chitchat import CHITCHAT_WORDS, is_chitchat
from lamella.core.compaction.draft import Draft
from lamella.core.compaction.expendable import Candidate, has_code, rank_expendable
from lamella.core.compaction.steps.taking import take_until
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Step, StepName
from lamella.core.prompt.layers.opening import render_notice
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.text.said.replies import outline_reply, stub_reply


def cut_chitchat(draft: Draft) -> Step | None:
    """Every acknowledgement at once: they say nothing, so none of them is worth another round."""
    words = CHITCHAT_WORDS | draft.chain.words
    removed: list[str] = []
    after = ""
    talk = draft.state.talk
    free = {exchange.user.segment.id for exchange in draft.free}
    # What is pinned stays, and is still what the next one says thanks for.
    shown = talk.exchanges[talk.hidden : -1] if draft.prompt.pinned else draft.free
    for index, exchange in enumerate(shown):
        bare = exchange.user.segment.id in free and not (
            exchange.attached or exchange.tools or exchange.rounds or exchange.lines
        )
        if index and bare and is_chitchat(exchange.user.text, after=after, words=words):
            removed.append(exchange.user.id)
        after = exchange.replies[-1].original
    return Step(name=StepName.CHITCHAT, removed=tuple(removed)) if removed else None


def cut_replies(draft: Draft) -> Step | None:
    """Oldest replies to their outlines."""
    count = draft.measure.count
    whole = ((one, reply) for one in draft.free for reply in one.replies if reply.segment.form is Form.FULL)
    outlined = ((reply, outline_reply(reply.text, one.turn_of(reply))) for one, reply in whole)
    freed = ((reply.id, reply.segment.tokens - count(text)) for reply, text in outlined if text is not None)
    taken = take_until(freed, draft.excess)
    return Step(name=StepName.REPLIES, removed=taken) if taken else None


def cut_expendable(draft: Draft) -> Step | None:
    """The most expendable replies to a line each; once there is none left, the most expendable turns, whole.

    Not of the stage that is worked on, where that is kept.
    """
    free = [one for one in draft.free if not draft.in_stage(one)] if draft.chain.keep_stage else draft.free
    turns = {exchange.user.id: exchange for exchange in free}
    ranked = rank_expendable(
        [_candidate(index, exchange) for index, exchange in enumerate(free)], total_turns=len(free) + 1
    )
    replies = take_until(_weigh_replies([turns[name] for name in ranked], draft), draft.excess)
    if replies:
        return Step(name=StepName.EXPENDABLE, removed=replies)
    if draft.span.since:
        # The line that says what is left out would stand before everything that stays.
        return None
    results = {turn.user.id: _weigh_tools(turn) for turn in free}
    overhead = 2 * draft.measure.per_message
    weights = ((name, turns[name].said_tokens + results[name] + overhead) for name in ranked)
    # The line that says that messages are left out has to be freed as well, where it does not stand yet.
    notice = 0 if draft.prompt.opening.notice else draft.measure.count(render_notice(len(turns), brief=True))
    taken = set(take_until(weights, draft.excess + notice))
    removed = tuple(said.id for name, turn in turns.items() if name in taken for said in turn.said)
    return Step(name=StepName.EXPENDABLE, removed=removed) if removed else None


def _weigh_replies(ranked: Sequence[Exchange], draft: Draft) -> Iterator[tuple[str, int]]:
    """What the replies of turns would free as a line each."""
    for exchange in ranked:
        for reply in exchange.replies:
            if reply.segment.form is not Form.HANDLE:
                yield reply.id, reply.segment.tokens - draft.measure.count(stub_reply(exchange.turn_of(reply)))


def _candidate(index: int, exchange: Exchange) -> Candidate:
    return Candidate(
        id=exchange.user.id,
        position=index,
        asked_tokens=exchange.user.segment.tokens,
        answered_tokens=sum(reply.segment.tokens for reply in exchange.replies),
        has_code=any(has_code(said.original) for said in exchange.said),
    )


def _weigh_tools(exchange: Exchange) -> int:
    """What calls and results weigh that stand in an exchange."""
    rounds = sum(said.segment.tokens for said in exchange.rounds)
    return rounds + sum(tool.tokens for tool in exchange.tools) + sum(line.tokens for line in exchange.lines)
