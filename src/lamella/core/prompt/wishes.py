"""Standing wishes in the prompt whose messages are not shown: those added by hand, and those of hidden turns."""

from collections.abc import Collection, Iterable, Sequence

from lamella.core.budget.counting import Measure
from lamella.core.log.turn import RuleBook
from lamella.core.prompt.layers.model import Count
from lamella.core.prompt.layers.opening import Wishes, read_wishes, stand_first, stand_wishes
from lamella.core.prompt.layers.strip import NO_WISHES, Talk
from lamella.core.prompt.state import State
from lamella.core.text.said.wishes import CUES, find_wishes
from lamella.core.values import replace

# What the wishes of turns that a history mode hides may take, in tokens: what stands for those turns takes as much.
_HIDDEN_TOKENS = 300


def hold_rules(state: State, book: RuleBook, measure: Measure) -> State:
    """The state once rules were added or ended by hand: the block that opens the talk has those that hold."""
    wishes, more = _list_held(state, book)
    block = stand_wishes(wishes, more=more, count=measure.count) if wishes else None
    talk = replace(state.talk, opening=stand_first(state.talk.opening, block))
    return replace(state, talk=talk, rules=book)


def _list_held(state: State, book: RuleBook) -> tuple[Wishes, int]:
    standing, more = read_wishes(state.talk.opening)
    taken_back = {text for _, text in state.rules.added} - {text for _, text in book.added}
    left = [one for one in standing if one[1] not in taken_back]
    return join_wishes(left, book.added, ended=book.ended), more


def moves_rules(state: State, book: RuleBook) -> bool:
    """Whether what opens the talk is other bytes once these rules hold."""
    if _list_held(state, book)[0] != read_wishes(state.talk.opening)[0]:
        return True
    hidden = state.talk.wished[2] if state.talk.hidden else ()
    return join_wishes(hidden, ended=book.ended) != join_wishes(hidden, ended=state.rules.ended)


def join_wishes(*some: Iterable[tuple[int, str]], ended: Iterable[tuple[int, str]] = ()) -> Wishes:
    """Wishes in the order in which they were said, each once: where it was said last, unless it ended since."""
    said: dict[str, int] = {}
    over = {text: turn for turn, text in ended}
    for turn, text in (one for wishes in some for one in wishes):
        said[text] = max(turn, said.get(text, 0))
    left = [(turn, text) for text, turn in said.items() if turn >= over.get(text, 0)]
    return tuple(sorted(left, key=lambda one: one[0]))


def fit_wishes(wishes: Wishes, kept: Collection[str], *, room: int, count: Count, more: int = 0) -> tuple[Wishes, int]:
    """As many as the room has, the newest first; those in ``kept`` stand in any case. And how many do not."""
    free = [one for one in wishes if one[1] not in kept]
    left = list(wishes)
    while free and stand_wishes(tuple(left), more=more, count=count).tokens > room:
        left.remove(free.pop(0))
        more += 1
    return tuple(left), more


def keep_hidden_wishes(state: State, measure: Measure, *, cues: Sequence[str] = ()) -> State:
    """The state whose prompt has the wishes of turns that the history mode hides, beside those that stand already.

    ``cues`` are words that they are known by beside those that ship.
    """
    talk = state.talk
    if not talk.hidden:
        return replace(state, talk=replace(talk, rules=None))
    wished = _look_at_hidden(talk, tuple(cues))
    standing, more = read_wishes(talk.opening)
    there = {text for _, text in standing}
    found = tuple(one for one in join_wishes(wished[2], ended=state.rules.ended) if one[1] not in there)
    found, hidden = fit_wishes(found, (), room=_HIDDEN_TOKENS, count=measure.count) if found else ((), 0)
    if not found:
        return replace(state, talk=replace(talk, wished=wished, rules=None))
    block = stand_wishes(join_wishes(standing, found), more=more + hidden, count=measure.count)
    same = talk.rules is not None and talk.rules.hash == block.hash
    return replace(state, talk=replace(talk, wished=wished, rules=talk.rules if same else block))


def _look_at_hidden(talk: Talk, cues: tuple[str, ...]) -> tuple[int, str, Wishes, tuple[str, ...]]:
    """The wishes of the turns that are hidden; what was looked at before is not looked at again, by the same cues."""
    seen, last, found, by = talk.wished
    if seen > talk.hidden or by != cues or (seen and talk.exchanges[seen - 1].user.id != last):
        seen, last, found, _ = NO_WISHES
    known = CUES.union(cues)
    fresh: Sequence[tuple[int, str]] = [
        (exchange.number + 1, wish)
        for exchange in talk.exchanges[seen : talk.hidden]
        for wish in find_wishes(exchange.user.original, cues=known)
    ]
    return talk.hidden, talk.exchanges[talk.hidden - 1].user.id, (*found, *fresh), cues
