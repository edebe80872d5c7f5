"""What a compaction leaves behind: the user's wishes that still hold, and an account of every exact word it touched."""

from collections.abc import Collection, Iterator, Sequence, Set
from functools import lru_cache

from lamella.core.compaction.draft import Draft
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Certificate, Step, StepName
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.layers.opening import read_wishes, render_wishes, write_wishes
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.state import State
from lamella.core.prompt.wishes import fit_wishes, join_wishes
from lamella.core.text.exact import find_exact
from lamella.core.text.said.wishes import find_wishes

# What the wishes of messages that are left out may weigh, of what may be sent at all.
WISHES_SHARE = 0.05
# The same texts are looked at in every plan, and reading one takes longer than everything else that is done with it.
_exact_words = lru_cache(maxsize=1 << 14)(find_exact)

# A text that a compaction touched, and whether its original can be recalled.
_Touched = tuple[str, bool]


def keep_wishes(before: State, draft: Draft, *, room: int) -> Step | None:
    """The block with the standing wishes of the messages that left, after those that stand in it already.

    The newest stand, as far as they have room; of the rest it says how many there are.
    """
    left = {exchange.user.id for exchange in draft.state.talk.exchanges}
    gone = [one for one in before.talk.exchanges if one.user.id not in left]
    book, cues, count = draft.state.rules, draft.chain.cues, draft.measure.count
    found = {one.user.id: join_wishes(_list_said(one, cues), ended=book.ended) for one in gone}
    new = [wish for wishes in found.values() for wish in wishes]
    if not new:
        return None
    standing, more = read_wishes(draft.state.talk.opening)
    by_hand = {text for _, text in book.added}
    kept, more = fit_wishes(join_wishes(standing, new), by_hand, room=room, count=count, more=more)
    if not kept:
        return None
    names = tuple(name for name, wishes in found.items() if wishes)
    text, content = render_wishes(kept, more=more), write_wishes(kept, more=more)
    return Step(name=StepName.RULES, removed=names, text=text, content=content)


def _list_said(exchange: Exchange, cues: Set[str]) -> list[tuple[int, str]]:
    """The wishes of a question, each with the number of its turn."""
    return [(exchange.number + 1, wish) for wish in find_wishes(exchange.user.original, cues=cues)]


def certify(before: State, draft: Draft, steps: Sequence[Step], *, path: Collection[str]) -> Certificate:
    """Of the exact words and the wishes in what was touched, how many stand, can be recalled, and are gone."""
    named = {name for step in steps if step.name is not StepName.RULES for name in step.removed}
    touched = list(_list_touched(before, named, frozenset(path)))
    words: dict[str, bool] = {}
    for text, recalled in touched:
        for word in _exact_words(text):
            words[word] = words.get(word, False) or recalled
    messages = draft.prompt.messages
    shown = {word for message in messages for piece in message.pieces for word in _exact_words(piece)}
    # An outline may name a command without the marks that make it one.
    shortened = "\n".join(_list_shortened(draft))
    stand = {word for word in words if word in shown or word in shortened}
    # What the user said holds no more is not lost.
    cues, ended = draft.chain.cues, draft.state.rules.ended
    asked = [one for one in before.talk.exchanges if one.user.id in named]
    wishes = {
        wish: one.user.id in path or not path
        for one in asked
        for _, wish in join_wishes(_list_said(one, cues), ended=ended)
    }
    standing = (text for _, text in read_wishes(draft.state.talk.opening)[0])
    kept = {*standing, *_list_wishes(draft)} if wishes else set[str]()
    return Certificate(words=_count(words, stand), rules=_count(wishes, kept))


def _count(found: dict[str, bool], stand: Collection[str]) -> tuple[int, int, int]:
    stands = sum(one in stand for one in found)
    recallable = sum(recalled for one, recalled in found.items() if one not in stand)
    return stands, recallable, len(found) - stands - recallable


def _list_touched(before: State, named: Collection[str], path: frozenset[str]) -> Iterator[_Touched]:
    for exchange in before.talk.exchanges:
        for said in exchange.said:
            if said.id in named:
                yield said.original, not path or said.id in path
        # What came with a turn or was called for in it is found with the turn.
        yield from ((tool.artifact.text, True) for tool in exchange.tools if tool.artifact.id in named)
        yield from ((said.text, True) for said in exchange.rounds if said.id in named)
    yield from ((entry.artifact.text, True) for name, entry in before.library.items() if name in named)


def _list_shortened(draft: Draft) -> Iterator[str]:
    """The texts of what stands in the talk as less than it was, or for something that does not stand."""
    for segment in draft.prompt.segments(LayerId.L4):
        if segment.form is not Form.FULL:
            yield segment.text


def _list_wishes(draft: Draft) -> Iterator[str]:
    for exchange in draft.state.talk.exchanges:
        yield from find_wishes(exchange.user.original, cues=draft.chain.cues)
