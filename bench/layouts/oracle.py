"""The cheapest plan that somebody could find who knows the future: which notes come back, when, and after which pauses.

A plan appends in each turn, or cuts before a message. A cut removes everything behind it that is not in use, and shows
again what is in use. A changed note is shown as a difference or in full. All talk stays. That is what layout ``auto``
does, but ``auto`` must decide without the future. A beam search looks for the cheapest plan: it keeps the best few
plans after each turn. Labels and lines about what is attached cost nothing here.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from bench.layouts.caches import Rates, count
from bench.layouts.commits import show_change
from bench.layouts.workloads import Step

# How many plans are kept after each turn, by the number of turns from which on fewer are kept.
_WIDTH, _LONG_WIDTH, _LONG = 120, 8, 100
# A note that is needed again within so many turns counts as in use when plans are compared.
_NEEDED_SOON = 8
# Over how many requests text that is not in use is expected to be read on, when plans are compared.
_READ_ON = (1.0, 2.0, 5.0)
# Tokens around a note, as all strategies write them.
_WRAPPER = count("<note_context>\n<title></title>\n<path></path>\n<content>\n\n</content>\n</note_context>\n")


class _Item(NamedTuple):
    """A note, or a difference to the copy before it."""

    path: str
    text: str
    tokens: int


class _Sent(NamedTuple):
    """A question that was sent, with its notes, and the reply. ``spent`` are tokens of a tool result, unused later."""

    items: tuple[_Item, ...]
    spent: int
    talk: int

    @property
    def tokens(self) -> int:
        return sum([item.tokens for item in self.items]) + self.spent + self.talk


class _Plan(NamedTuple):
    cost: float
    compared_cost: float
    sent: tuple[_Sent, ...]


class _Turn(NamedTuple):
    """A turn in tokens."""

    question: int
    reply: int
    output: int
    pause: float
    notes: Mapping[str, str]


_count = cache(count)


@cache
def _count_note(path: str, text: str) -> int:
    return _WRAPPER + 2 * _count(path) + _count(text)


@cache
def _count_change(path: str, old: str, new: str) -> int:
    return _WRAPPER + 2 * _count(path) + _count(show_change(path, old, new))


def find_best_plan(steps: Sequence[Step], system: str, rates: Rates) -> float:
    """Return the cost of the cheapest plan that was found, in tokens of plain input."""
    turns = [
        _Turn(
            question=_count(step.text),
            reply=_count(step.reply),
            output=0 if step.output is None else _count(step.output),
            pause=step.pause,
            notes=step.held,
        )
        for step in steps
    ]
    return min(_search(turns, _count(system), rates, read_on=read_on) for read_on in _READ_ON)


class _Uses:
    """In which turns each text of a note is attached."""

    def __init__(self, turns: Sequence[_Turn]) -> None:
        self._turns: dict[tuple[str, str], list[int]] = {}
        for number, turn in enumerate(turns):
            for one in turn.notes.items():
                self._turns.setdefault(one, []).append(number)

    def is_needed_soon(self, item: _Item, number: int) -> bool:
        """Whether a text is attached again soon after a turn."""
        used = self._turns[item.path, item.text]
        at = bisect_right(used, number)
        return at < len(used) and used[at] - number <= _NEEDED_SOON

    def find_last_in_a_row(self, item: _Item, number: int) -> int:
        """The last of the turns in a row, from this one on, to which a text is attached."""
        used = self._turns[item.path, item.text]
        at = bisect_right(used, number)
        while at < len(used) and used[at] == number + 1:
            at, number = at + 1, number + 1
        return number

    def count_unused(self, sent: Sequence[_Sent], number: int) -> int:
        """The tokens of a request that are not needed soon."""
        items = [item.tokens for one in sent for item in one.items if not self.is_needed_soon(item, number)]
        return sum(items) + sum([one.spent for one in sent])


def _search(turns: Sequence[_Turn], system: int, rates: Rates, *, read_on: float) -> float:
    width = _LONG_WIDTH if len(turns) >= _LONG else _WIDTH
    uses, plans = _Uses(turns), [_Plan(0.0, 0.0, ())]
    for number, turn in enumerate(turns):
        last_reply = turns[number - 1].reply if number else 0
        found: dict[int, _Plan] = {}
        for plan in plans:
            for cost, sent in _list_requests(plan, turn, number, uses=uses, overhead=(system, last_reply), rates=rates):
                compared = cost + rates.read * read_on * uses.count_unused(sent, number)
                name = hash(sent)
                if name not in found or found[name].cost > cost:
                    found[name] = _Plan(cost, compared, sent)
        plans = sorted(found.values(), key=lambda plan: plan.compared_cost)[:width]
    return min(plan.cost for plan in plans)


def _list_requests(
    plan: _Plan, turn: _Turn, number: int, *, uses: _Uses, overhead: tuple[int, int], rates: Rates
) -> Iterator[tuple[float, tuple[_Sent, ...]]]:
    """List the requests that a turn can make after a plan, each with what all requests have cost then.

    ``overhead`` are the tokens of the system prompt, and those of the last reply, which was not sent before.
    """
    (system, last_reply), is_cold = overhead, not plan.sent or turn.pause > rates.lifetime
    before = sum([one.tokens for one in plan.sent])
    for kept, unchanged in _list_cuts(plan.sent, turn, is_cold=is_cold, by_message=rates.lookback is not None):
        served = 0 if is_cold else system + min(unchanged, before - last_reply)
        served -= served % rates.step
        served = served if served >= rates.minimum else 0
        stays = system + sum([one.tokens for one in kept]) + turn.question + turn.output
        for new in _list_new_items(kept, turn):
            # Notes that stay longest come first, so that later cuts can leave them where they are.
            items = tuple(sorted(new, key=lambda item: -uses.find_last_in_a_row(item, number)))
            total = stays + sum([item.tokens for item in items])
            cost = plan.cost + rates.read * served + rates.write * (total - served)
            yield cost, (*kept, _Sent(items, turn.output, turn.question + turn.reply))


def _list_cuts(
    sent: tuple[_Sent, ...], turn: _Turn, *, is_cold: bool, by_message: bool
) -> Iterator[tuple[tuple[_Sent, ...], int]]:
    """List what stays of the messages after each possible cut, and how many tokens of it are as they were."""
    if is_cold:
        yield tuple([_Sent((), 0, one.talk) for one in sent]), 0
        return
    yield sent, sum([one.tokens for one in sent])
    before = 0
    for at, one in enumerate(sent):
        if one.items or one.spent:
            rest = tuple([_Sent((), 0, other.talk) for other in sent[at + 1 :]])
            heads = [0]
            if not by_message:
                # A cache of every prefix serves the notes at the beginning of a message, too.
                while heads[-1] < len(one.items) and turn.notes.get(one.items[heads[-1]].path):
                    heads.append(heads[-1] + 1)
            for head in heads:
                items = one.items[:head]
                kept = before + sum([item.tokens for item in items])
                yield (*sent[:at], _Sent(items, 0, one.talk), *rest), kept
        before += one.tokens


def _list_new_items(kept: Sequence[_Sent], turn: _Turn) -> list[list[_Item]]:
    """List what the question shows: changed notes as differences where these are shorter, or all of them in full."""
    shown = {item.path: item.text for one in kept for item in one.items}
    shorter: list[_Item] = []
    whole: list[_Item] = []
    for path, text in turn.notes.items():
        old = shown.get(path)
        if old == text:
            continue
        full = _Item(path, text, _count_note(path, text))
        whole.append(full)
        changed = full if old is None else _Item(path, text, _count_change(path, old, text))
        shorter.append(min(changed, full, key=lambda item: item.tokens))
    return [shorter] if shorter == whole else [shorter, whole]
