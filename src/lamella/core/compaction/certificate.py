"""What a compaction leaves behind: the user's wishes that still hold, and an account of every exact word it touched."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set

from lamella.core.compaction.draft import Draft
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Certificate, Step, StepName
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.layers.opening import read_wishes, render_wishes, write_wishes
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.state import State
from lamella.core.prompt.wishes import fit_wishes, join_wishes
from lamella.core.text.exact import read_exact
from lamella.core.text.said.wishes import find_all_wishes

# What the wishes of messages that are left out may weigh, of what may be sent at all.
WISHES_SHARE = 0.05

# A text that a compaction touched, and whether its original can be recalled.
_Touched = tuple[str, bool]


# The wishes of questions by their messages, each with the number of its turn.
Wishes = Mapping[str, Sequence[tuple[int, str]]]


def find_wishes(before: State, draft: Draft, steps: Sequence[Step]) -> Wishes:
    """The standing wishes of the messages that left, or that a step names."""
    named = _list_named(steps)
    left = {exchange.user.segment.id for exchange in draft.state.talk.exchanges}
    asked = [one for one in before.talk.exchanges if one.user.segment.id in named or one.user.segment.id not in left]
    return _find_said(asked, draft.chain.cues, ended=draft.state.rules.ended)


def _list_named(steps: Sequence[Step]) -> set[str]:
    return {name for step in steps if step.name is not StepName.RULES for name in step.removed}


def keep_wishes(wishes: Wishes, draft: Draft, *, room: int) -> Step | None:
    """The block with the standing wishes of the messages that left, after those that stand in it already.

    The newest stand, as far as they have room; of the rest it says how many there are.
    """
    left = {exchange.user.segment.id for exchange in draft.state.talk.exchanges} if wishes else set[str]()
    found = {name: every for name, every in wishes.items() if name not in left}
    book, count = draft.state.rules, draft.measure.count
    new = [wish for every in found.values() for wish in every]
    if not new:
        return None
    standing, more = read_wishes(draft.state.talk.opening)
    by_hand = {text for _, text in book.added}
    kept, more = fit_wishes(join_wishes(standing, new), by_hand, room=room, count=count, more=more)
    if not kept:
        return None
    text, content = render_wishes(kept, more=more), write_wishes(kept, more=more)
    return Step(name=StepName.RULES, removed=tuple(found), text=text, content=content)


def trim_wishes(draft: Draft, *, room: int) -> Step | None:
    """The block of standing wishes with as many as have room, where it has more: its window was a larger one.

    The newest stand. Those that were added by hand stand in any case, unless nothing is spared.
    """
    standing, more = read_wishes(draft.state.talk.opening)
    by_hand, count = {text for _, text in draft.state.rules.added}, draft.measure.count
    kept, left = fit_wishes(standing, () if draft.resort else by_hand, room=room, count=count, more=more)
    if kept == standing:
        return None
    text, content = render_wishes(kept, more=left), write_wishes(kept, more=left)
    return Step(name=StepName.RULES, removed=(), text=text, content=content)


def _find_said(exchanges: Sequence[Exchange], cues: Set[str], *, ended: Iterable[tuple[int, str]]) -> Wishes:
    """The wishes of questions that hold some which did not end since, each with the number of its turn."""
    turns = {one.user.segment.id: one.number + 1 for one in exchanges}
    found = find_all_wishes({one.user.segment.id: one.user.original for one in exchanges}, cues=cues)
    said = {name: join_wishes([(turns[name], wish) for wish in every], ended=ended) for name, every in found.items()}
    return {name: every for name, every in said.items() if every}


def certify(
    before: State, draft: Draft, steps: Sequence[Step], *, wishes: Wishes, path: Collection[str]
) -> Certificate:
    """Of the exact words and the wishes in what was touched, how many stand, can be recalled, and are gone."""
    named = _list_named(steps)
    recallable = frozenset(path)
    words: dict[str, bool] = {}
    for text, recalled in _list_touched(before, named, recallable):
        for word in read_exact(text):
            words[word] = words.get(word, False) or recalled
    stand = _find_standing(draft, words) if words else set[str]()
    # What the user said holds no more is not lost.
    touched = {name: every for name, every in wishes.items() if name in named}
    wished = {wish: not path or name in recallable for name, every in touched.items() for _, wish in every}
    standing = {text for _, text in read_wishes(draft.state.talk.opening)[0]}
    # What stood in the block and has no room there any more is found where it was said or added.
    wished |= {text: True for _, text in read_wishes(before.talk.opening)[0] if text not in standing}
    kept = {*standing, *_list_wishes(draft)} if wished else set[str]()
    return Certificate(words=_count(words, stand), rules=_count(wished, kept))


def _find_standing(draft: Draft, words: Collection[str]) -> set[str]:
    """Those of some exact words that stand in the request."""
    shown = {word for message in draft.prompt.messages for piece in message.pieces for word in read_exact(piece)}
    # An outline may name a command without the marks that make it one.
    shortened = "\n".join(_list_shortened(draft))
    return {word for word in words if word in shown or word in shortened}


def _count(found: dict[str, bool], stand: Collection[str]) -> tuple[int, int, int]:
    stands = sum(one in stand for one in found)
    recallable = sum(recalled for one, recalled in found.items() if one not in stand)
    return stands, recallable, len(found) - stands - recallable


def _list_touched(before: State, named: Collection[str], path: frozenset[str]) -> list[_Touched]:
    exchanges = before.talk.exchanges
    said = [one for exchange in exchanges for one in (exchange.user, exchange.reply, *exchange.joined)]
    touched = [
        (one.segment.text if one.whole is None else one.whole[one.segment.id], not path or one.segment.id in path)
        for one in said
        if one.segment.id in named
    ]
    # What came with a turn or was called for in it is found with the turn.
    tools = [tool.artifact for exchange in exchanges for tool in exchange.tools]
    touched += [(artifact.text, True) for artifact in tools if artifact.id in named]
    rounds = [one.segment for exchange in exchanges for one in exchange.rounds]
    touched += [(segment.text, True) for segment in rounds if segment.id in named]
    return touched + [(entry.artifact.text, True) for name, entry in before.library.items() if name in named]


def _list_shortened(draft: Draft) -> Iterator[str]:
    """The texts of what stands in the talk as less than it was, or for something that does not stand."""
    for segment in draft.prompt.segments(LayerId.L4):
        if segment.form is not Form.FULL:
            yield segment.text


def _list_wishes(draft: Draft) -> Iterator[str]:
    asked = {one.user.segment.id: one.user.segment.text for one in draft.state.talk.exchanges}
    for wishes in find_all_wishes(asked, cues=draft.chain.cues).values():
        yield from wishes
