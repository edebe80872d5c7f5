"""Messages out of the talk: acknowledgements alone, and whole turns by how expendable they are."""

from lamella.core.compaction.chitchat import CHITCHAT_WORDS, is_chitchat
from lamella.core.compaction.draft import Draft
from lamella.core.compaction.expendable import Candidate, has_code, rank_expendable
from lamella.core.compaction.steps.taking import take_until
from lamella.core.log.receipt import Step, StepName
from lamella.core.prompt.layers.strip import Exchange


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
        after = exchange.replies[-1].text
    return Step(name=StepName.CHITCHAT, removed=tuple(removed)) if removed else None


def cut_expendable(draft: Draft) -> Step | None:
    """The most expendable turns, whole, until the rest fits; not of the stage that is worked on, where that is kept."""
    free = [one for one in draft.free if not draft.in_stage(one)] if draft.chain.keep_stage else draft.free
    turns = {exchange.user.id: exchange for exchange in free}
    ranked = rank_expendable(
        [_candidate(index, exchange) for index, exchange in enumerate(free)], total_turns=len(free) + 1
    )
    results = {turn.user.id: _weigh_tools(turn) for turn in free}
    overhead = 2 * draft.measure.per_message
    weights = ((name, turns[name].said_tokens + results[name] + overhead) for name in ranked)
    taken = set(take_until(weights, draft.excess))
    removed = tuple(said.id for name, turn in turns.items() if name in taken for said in turn.said)
    return Step(name=StepName.EXPENDABLE, removed=removed) if removed else None


def _candidate(index: int, exchange: Exchange) -> Candidate:
    return Candidate(
        id=exchange.user.id,
        position=index,
        asked_tokens=exchange.user.segment.tokens,
        answered_tokens=sum(reply.segment.tokens for reply in exchange.replies),
        has_code=any(has_code(said.text) for said in exchange.said),
    )


def _weigh_tools(exchange: Exchange) -> int:
    """What calls and results weigh that stand in an exchange."""
    rounds = sum(said.segment.tokens for said in exchange.rounds)
    return rounds + sum(tool.tokens for tool in exchange.tools) + sum(line.tokens for line in exchange.lines)
