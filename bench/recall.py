"""Recall: what is found again after compactions, also in other words; and how little a search takes in a long talk."""

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from bench.rewording import REPORTED, TUNED_ON, RewordedFact, make_reworded
from bench.text import make_text
from bench.verdicts import Verdicts
from lamella import Conversation, Note, ToolResult

# The default layout comes first: its figure is the one that the README quotes.
LAYOUTS = ("auto", "library", "in_place")
FACTS = 200
SHARES = (0.35, 0.35, 0.35)
FEW, MANY = 1_000, 10_000
# How many originals each question of the timing finds, and how many questions there are.
HITS, QUESTIONS = 4, 25
ROUNDS = 5
# So small that nearly all of it is out of the prompt.
WINDOW, RESERVE = 12_000, 1_000
_SYLLABLES = (
    "ba",
    "co",
    "di",
    "fu",
    "ge",
    "ha",
    "jo",
    "ki",
    "lu",
    "me",
    "na",
    "po",
    "ri",
    "su",
    "te",
    "vo",
    "wa",
    "zi",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finds:
    """What became of planted facts: how many the prompt holds, and how many one recall gives back."""

    facts: int
    in_prompt: int
    exact: int
    reworded: int
    missed: tuple[str, ...]

    @property
    def exact_share(self) -> float:
        """In percent, in the prompt or found by what was said."""
        return 100 * (self.in_prompt + self.exact) / self.facts

    @property
    def reworded_share(self) -> float:
        """In percent, in the prompt or found in other words."""
        return 100 * (self.in_prompt + self.reworded) / self.facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a conversation is, and how long recall takes in it: the first time, later, and after one more turn."""

    turns: int
    first: float
    by_words: float
    exact: float
    grown: float


def bench_recall(verdicts: Verdicts) -> None:
    """Facts, then times."""
    for seeds, reported in ((TUNED_ON, False), (REPORTED, True)):
        for layout in LAYOUTS:
            _bench_facts(verdicts, seeds, layout=layout, reported=reported)
    _bench_times(verdicts)


def _bench_facts(verdicts: Verdicts, seeds: Sequence[int], *, layout: str, reported: bool) -> None:
    found = []
    for seed in seeds:
        print(f"recall, {layout}, seed {seed}: planting {FACTS} facts ...", file=sys.stderr, flush=True)
        found.append(probe_recall(seed, layout=layout))
    facts, prompt = sum(one.facts for one in found), sum(one.in_prompt for one in found)
    exact = sum(one.exact_share for one in found) / len(found)
    reworded = sum(one.reworded_share for one in found) / len(found)
    print(
        f"recall, {layout}, seeds {', '.join(map(str, seeds))}{'' if reported else ' (tuned on)'}: {facts:,} facts,"
        f" compacted {len(SHARES)} times; {prompt:,} in the prompt, {exact:.1f} % there or by an exact recall,"
        f" {reworded:.1f} % there or in other words",
        flush=True,
    )
    for question in [question for one in found for question in one.missed][:10]:
        print(f"  missed: {question}")
    if reported:
        verdicts.at_least(f"recall, {layout}: % of facts in the prompt or one exact recall away", exact, 100.0)
        verdicts.at_least(f"recall, {layout}: % of facts in the prompt or found in other words", reworded, 97.0)


def probe_recall(seed: int, *, layout: str, facts: int = FACTS) -> Finds:
    """Plant facts, compact three times on the way, and ask for those that left the prompt."""
    planted = make_reworded(seed, facts)
    chat = Conversation(system="You are a careful assistant.", layout=layout)
    size = -(-facts // len(SHARES))
    for at, share in zip(range(0, facts, size), SHARES, strict=True):
        for number, fact in enumerate(planted[at : at + size]):
            _plant(chat, fact, number, seed=seed * FACTS + at + number)
        _shrink(chat, share)
    turn = chat.ask("Thanks, that is all.")
    prompt = "\n".join(message.text for message in turn.messages)
    gone = [fact for fact in planted if fact.sentence not in prompt]
    missed = [fact for fact in gone if not _recalls(chat, fact, fact.question)]
    return Finds(
        facts=facts,
        in_prompt=facts - len(gone),
        exact=sum(_recalls(chat, fact, f'"{fact.exact}"') for fact in gone),
        reworded=len(gone) - len(missed),
        missed=tuple(f"{fact.question} | {fact.sentence}" for fact in missed),
    )


def _recalls(chat: Conversation, fact: RewordedFact, query: str) -> bool:
    return any(fact.sentence in found.passage.text for found in chat.recall(query))


def _plant(chat: Conversation, fact: RewordedFact, number: int, *, seed: int) -> None:
    """A turn that says the fact, typed, answered, in a note or in what a tool gave; and one that says nothing."""
    around = f"{make_text(seed, 300)}\n{fact.sentence}\n{make_text(seed + 1, 300)}"
    match number % 4:
        case 0:
            chat.ask(around)
            chat.reply("I will keep that in mind.")
        case 1:
            chat.ask("What do we know about the next project?")
            chat.reply(around)
        case 2:
            chat.ask(
                "Please read this.", attach=[Note(path=f"notes/{seed}.md", text=f"{make_text(seed, 6_000)}\n{around}")]
            )
            chat.reply("I have read it.")
        case _:
            result = ToolResult(name="look_up", arguments={"entry": seed}, output=around)
            chat.ask("And what does the register say?", results=[result])
            chat.reply("It says this.")
    chat.ask("ok")
    chat.reply(make_text(seed + 2, 200))


def _shrink(chat: Conversation, share: float) -> None:
    """Compact to a share of the request's tokens now."""
    turn = chat.ask("Where are we?")
    chat.reply("On the way.")
    if chat.compact(share * turn.tokens.total / turn.tokens.limit) is None:
        raise AssertionError(f"nothing was compacted at {turn.tokens.total:,} tokens")


def _measure_and_print(turns: int) -> Timing:
    print(f"recall: building {turns:,} turns ...", file=sys.stderr, flush=True)
    one = measure_times(turns)
    print(
        f"  {one.turns:>6,} turns: first {one.first * 1e3:8.1f} ms, by words {one.by_words * 1e3:6.2f} ms,"
        f" exactly {one.exact * 1e3:6.2f} ms, after one more turn {one.grown * 1e3:6.2f} ms",
        flush=True,
    )
    return one


def _bench_times(verdicts: Verdicts) -> None:
    print(f"recall: {QUESTIONS} questions with {HITS} hits each, in {FEW:,} and {MANY:,} turns", flush=True)
    few, many = (_measure_and_print(turns) for turns in (FEW, MANY))
    verdicts.at_most("recall by words: growth with the turns, log-log slope", _slope(few.by_words, many.by_words), 0.3)
    verdicts.at_most("recall exactly: growth with the turns, log-log slope", _slope(few.exact, many.exact), 0.6)
    verdicts.at_most("recall, indexing: growth with the turns, log-log slope", _slope(few.first, many.first), 1.2)
    verdicts.at_most("recall after one more turn over the first, 10,000 turns", many.grown / many.first, 0.1)


def _slope(few: float, many: float) -> float:
    return math.log(many / few) / math.log(MANY / FEW)


def measure_times(turns: int) -> Timing:
    """Recall in a long conversation that is compacted on its way; each question finds the same number."""
    chat = Conversation(layout="in_place", window=WINDOW, reserve=RESERVE)
    words = Random(7)
    needles = [_make_word(words) for _ in range(QUESTIONS)]
    places = {turn: needle for needle in needles for turn in words.sample(range(turns // 2), HITS)}
    for number in range(turns):
        told = f"The {places[number]} stood there." if number in places else ""
        chat.ask(
            " ".join(_make_word(words) if at % 6 == 0 else words.choice(_COMMON) for at in range(30)) + f". {told}"
        )
        chat.reply(" ".join(words.choices(_COMMON, k=50)))
    first = _clock(lambda: chat.recall("nothing of it"))
    by_words = _least(chat, [f"when did the {needle} stand there" for needle in needles])
    exact = _least(chat, [f'"{needle} stood"' for needle in needles])
    chat.ask("One more.")
    chat.reply("Yes.")
    return Timing(
        turns=turns,
        first=first,
        by_words=by_words,
        exact=exact,
        grown=_clock(lambda: chat.recall(f"when did the {needles[0]} stand there")),
    )


_COMMON = tuple(make_text(1, 2_000).lower().split())


def _make_word(chance: Random) -> str:
    return "".join(chance.choice(_SYLLABLES) for _ in range(5))


def _least(chat: Conversation, queries: Sequence[str]) -> float:
    """Of several rounds over all questions the quickest, for one question."""
    return min(_clock(lambda: [chat.recall(query) for query in queries]) for _ in range(ROUNDS)) / len(queries)


def _clock(do: object) -> float:
    assert callable(do)
    start = time.process_time()
    do()
    return time.process_time() - start
