"""Messages out of the talk: acknowledgements, replies to their outlines, and what is most expendable.

What the user typed goes last of all: it is the smaller part of most talk, and holds most of what is asked for later.
"""

from collections.abc import Iterator, Sequence

from lamella.core.compaction.chitchat import CHITCHAT_WORDS, is_chitchat
from lamella.core.compaction.draft import Draft
from lamella.core.compaction.expendable import BEGINS_CODE, Candidate, has_code, rank_expendable
from lamella.core.compaction.steps.taking import take_until
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Step, StepName
from lamella.core.prompt.layers.opening import render_notice
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.text.said.replies import find_gist, outline_reply, stub_reply


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
        asked = exchange.user.segment
        bare = asked.id in free and not (exchange.attached or exchange.tools or exchange.rounds or exchange.lines)
        # Most of what is typed asks something, and is not looked at any closer.
        if index and bare and "?" not in asked.text and is_chitchat(asked.text, after=after, words=words):
            removed.append(asked.id)
        last = exchange.joined[-1] if exchange.joined else exchange.reply
        after = last.segment.text if last.whole is None else last.whole[last.segment.id]
    return Step(name=StepName.CHITCHAT, removed=tuple(removed)) if removed else None


def cut_replies(draft: Draft) -> Step | None:
    """Oldest replies to their outlines."""
    count = draft.measure.count
    replies = ((reply, reply.turn or one.number + 1) for one in draft.free for reply in (one.reply, *one.joined))
    whole = ((reply.segment, turn) for reply, turn in replies if reply.segment.form is Form.FULL)
    outlined = ((segment, outline_reply(segment.text, turn)) for segment, turn in whole)
    freed = ((segment.id, segment.tokens - count(text)) for segment, text in outlined if text is not None)
    # A reply of many pages takes its turn like any other: those that went before it for nothing stay as they were.
    taken = take_until(freed, draft.excess, sparing=True)
    if not taken:
        return None
    # Only whole ones are taken, so what stands of them is all that was said.
    said = {one.segment.id: one.segment.text for turn in draft.free for one in (turn.reply, *turn.joined)}
    return Step(name=StepName.REPLIES, removed=taken, gists=tuple([find_gist(said[name]) for name in taken]))


def cut_expendable(draft: Draft) -> Step | None:
    """The most expendable replies to a line each; once there is none left, the most expendable turns, whole.

    Not of the stage that is worked on, where that is kept.
    """
    free = [one for one in draft.free if not draft.in_stage(one)] if draft.chain.keep_stage else draft.free
    if not free:
        return None
    turns = {exchange.user.segment.id: exchange for exchange in free}
    candidates = _list_candidates(free)
    ranked = rank_expendable(candidates, total_turns=len(free) + 1)
    replies = take_until(_weigh_replies([turns[name] for name in ranked], draft), draft.excess)
    if replies:
        return Step(name=StepName.EXPENDABLE, removed=replies)
    if draft.span.since:
        # The line that says what is left out would stand before everything that stays.
        return None
    overhead = 2 * draft.measure.per_message
    results = [_weigh_tools(turn) if turn.tools or turn.rounds or turn.lines else 0 for turn in free]
    whole = zip(candidates, results, strict=True)
    weighed = {turn.id: turn.asked_tokens + turn.answered_tokens + tools for turn, tools in whole}
    weights = ((name, weighed[name] + overhead) for name in ranked)
    # The line that says that messages are left out has to be freed as well, where it does not stand yet.
    notice = 0 if draft.prompt.opening.notice else draft.measure.count(render_notice(len(turns), brief=True))
    taken = set(take_until(weights, draft.excess + notice))
    said = [one for name, turn in turns.items() if name in taken for one in (turn.user, turn.reply, *turn.joined)]
    removed = tuple([one.segment.id for one in said])
    return Step(name=StepName.EXPENDABLE, removed=removed) if removed else None


def _weigh_replies(ranked: Sequence[Exchange], draft: Draft) -> Iterator[tuple[str, int]]:
    """What the replies of turns would free as a line each."""
    count = draft.measure.count
    replies = ((reply, reply.turn or one.number + 1) for one in ranked for reply in (one.reply, *one.joined))
    larger = ((reply.segment, turn) for reply, turn in replies if reply.segment.form is not Form.HANDLE)
    return ((segment.id, segment.tokens - count(stub_reply(turn))) for segment, turn in larger)


def _list_candidates(exchanges: Sequence[Exchange]) -> list[Candidate]:
    # Thousands of them are made in one plan: nothing is called for those that hold no code.
    said = [(one.user, one.reply, *one.joined) for one in exchanges]
    texts = [[one.segment.text if one.whole is None else one.whole[one.segment.id] for one in every] for every in said]
    coded = [[text for text in every if BEGINS_CODE.search(text)] for every in texts]
    return [
        Candidate(
            id=exchange.user.segment.id,
            position=index,
            asked_tokens=exchange.user.segment.tokens,
            answered_tokens=sum([one.segment.tokens for one in every[1:]]),
            has_code=any(map(has_code, coded[index])),
        )
        for index, (exchange, every) in enumerate(zip(exchanges, said, strict=True))
    ]


def _weigh_tools(exchange: Exchange) -> int:
    """What calls and results weigh that stand in an exchange."""
    rounds = sum(said.segment.tokens for said in exchange.rounds)
    return rounds + sum(tool.tokens for tool in exchange.tools) + sum(line.tokens for line in exchange.lines)
