"""What a compaction leaves behind: the user's wishes that still hold, and an account of every exact word it touched."""

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from lamella.core.compaction.draft import Draft
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Certificate, Step, StepName
from lamella.core.prompt.layers.model import LayerId, SegmentKind
from lamella.core.prompt.layers.opening import render_wishes
from lamella.core.prompt.state import State
from lamella.core.text.exact import find_exact
from lamella.core.text.said.wishes import find_wishes

# What the wishes of messages that are left out may weigh, of what may be sent at all.
WISHES_SHARE = 0.05
_MARK = "- "
# The same texts are looked at in every plan, and reading one takes longer than everything else that is done with it.
_exact_words = lru_cache(maxsize=1 << 14)(find_exact)

# A text that a compaction touched, and whether its original can be recalled.
_Touched = tuple[str, bool]


def keep_wishes(before: State, draft: Draft, *, room: int) -> Step | None:
    """The block with the standing wishes of the messages that left, after those that stand in it already.

    The newest stand, as far as they have room; of the rest it says how many there are.
    """
    left = {exchange.user.id for exchange in draft.state.talk.exchanges}
    gone = [one.user for one in before.talk.exchanges if one.user.id not in left]
    cues = draft.chain.cues
    found = {said.id: find_wishes(said.original, cues=cues) for said in gone}
    new = [wish for wishes in found.values() for wish in wishes]
    if not new:
        return None
    lines = list(dict.fromkeys((*standing_wishes(draft.state), *new)))
    count, shown = draft.measure.count, len(lines)
    while shown and count(_render(lines[-shown:], len(lines) - shown)) > room:
        shown -= 1
    if not shown:
        return None
    kept = lines[-shown:]
    content = "\n".join(f"{_MARK}{wish}" for wish in kept)
    names = tuple(name for name, wishes in found.items() if wishes)
    return Step(name=StepName.RULES, removed=names, text=_render(kept, len(lines) - shown), content=content)


def standing_wishes(state: State) -> tuple[str, ...]:
    """The wishes that stand in the opening of the talk, the newest last."""
    blocks = [block for block in state.talk.opening.blocks if block.kind is SegmentKind.RULES]
    return tuple(line.removeprefix(_MARK) for block in blocks for line in block.content.split("\n") if line)


def _render(wishes: Sequence[str], more: int) -> str:
    return render_wishes([f"{_MARK}{wish}" for wish in wishes], more=more)


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
    asked = [
        (one.user.original, one.user.id in path or not path) for one in before.talk.exchanges if one.user.id in named
    ]
    wishes = {wish: recalled for text, recalled in asked for wish in find_wishes(text, cues=draft.chain.cues)}
    kept = {*standing_wishes(draft.state), *_list_wishes(draft)} if wishes else set[str]()
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
