"""Evidence: how much of what is asked for later is still there at a quarter of the tokens, by three rules.

The talk is real, where it is beside the checkout, and stretched: its questions in an order of the seed, and after
each of them as many real answers as make people's own words a twelfth of it all, as in public sets of long
conversations. Where which fact stands is the seed's. Half of the seeds were looked at while rules were chosen; the
other half is judged.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random

from bench.layouts.texts import Texts, load_texts
from bench.planted import Evidence, make_evidence
from bench.verdicts import Verdicts
from lamella import Conversation, Turn

TUNED, HELD_BACK = (1, 2), (5, 6)
SIZES = (100_000, 500_000)
SHARE = 0.25
HITS = 10
FACTS = 120
# What people type is this part of the characters; sets of long conversations have 7 to 9 of a hundred.
_TYPED = 0.08
_CHARACTERS = 4.4
_LONGEST = 6_000

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Shares of the evidence: in the prompt, there or among the hits of a search, and of rules in the prompt."""

    prompt: float
    reached: float
    wishes: float
    newest: float
    searched: float


def make_talk(texts: Texts, seed: int, characters: int, *, planted: int = 0) -> list[Pair]:
    """Questions and answers of so many characters, in an order of the seed, each answer of several that were given.

    With ``planted``, so many characters of what people type are left for sentences that are planted later.
    """
    random, said = Random(seed), list(_list_messages(texts))
    questions, answers = [asked for asked, _ in said], [answer for _, answer in said]
    random.shuffle(questions)
    random.shuffle(answers)
    talk: list[Pair] = []
    typed = answered = 0
    more = cycle(answers)
    for question in cycle(questions):
        if typed + answered >= characters:
            return talk
        typed += len(question)
        parts: list[str] = []
        while answered * _TYPED < (typed + planted * (typed + answered) / characters) * (1 - _TYPED):
            parts.append(next(more))
            answered += len(parts[-1])
        talk.append((question, "\n\n".join(parts) or "Understood."))
    return talk


def _list_messages(texts: Texts) -> Iterator[Pair]:
    """What was said in every conversation there is: the questions, and the answers in words."""
    yield from ((asked, answer) for asked, answer in texts.pairs if asked.strip() and answer.strip())
    for _, messages in texts.trajectories:
        asked = ""
        for message in messages:
            content = str(message.get("content") or "")[:_LONGEST]
            if message["role"] == "user":
                asked = content
            elif message["role"] == "assistant" and asked.strip() and content.strip():
                yield asked, content
                asked = ""


def plant(talk: Sequence[Pair], evidence: Sequence[Evidence], seed: int) -> list[Pair]:
    """The talk with every sentence in a turn of its own choice, those of one group in their order."""
    random = Random(seed)
    # The last turns would be kept by any rule.
    turns = int(len(talk) * 0.9)
    groups: dict[int, list[Evidence]] = {}
    for one in evidence:
        groups.setdefault(one.group, []).append(one)
    here: dict[int, list[Evidence]] = {}
    for group in groups.values():
        for turn, one in zip(sorted(random.sample(range(turns), len(group))), group, strict=True):
            here.setdefault(turn, []).append(one)
    return [_say(pair, here.get(turn, ()), random) for turn, pair in enumerate(talk)]


def _say(pair: Pair, planted: Sequence[Evidence], random: Random) -> Pair:
    asked, answered = pair
    for one in planted:
        if one.replied:
            answered = _put_inside(answered, one.sentence, random)
        else:
            asked = f"{one.sentence} {asked}" if random.random() < 0.5 else f"{asked}\n{one.sentence}"
    return asked, answered


def _put_inside(answer: str, sentence: str, random: Random) -> str:
    """A sentence between two paragraphs of an answer, or behind it; never in the middle of code."""
    parts = re.split(r"\n\n(?![ \t]|```)", answer)
    at = random.randrange(len(parts)) + 1
    while "\n\n".join(parts[:at]).count("```") % 2:
        at += 1
    return "\n\n".join([*parts[:at], sentence, *parts[at:]])


def build_conversation(talk: Sequence[Pair], *, tokens: int) -> tuple[Conversation, Turn]:
    """A conversation in which all of it was said, and the turn after it."""
    chat = Conversation(system="You are a careful assistant.", layout="in_place", window=4 * tokens, keep_ledger=False)
    for asked, answered in talk:
        chat.ask(asked)
        chat.reply(answered)
    turn = chat.ask("Where are we?")
    chat.reply("On the way.")
    return chat, turn


def probe(seed: int, tokens: int) -> Kept:
    """What three rules keep of the same talk at the same share of its tokens."""
    evidence = make_evidence(seed, FACTS)
    talk = plant(make_talk(load_texts(), seed, int(tokens * _CHARACTERS)), evidence, seed)
    chat, turn = build_conversation(talk, tokens=tokens)
    chat.compact(SHARE * turn.tokens.total / turn.tokens.limit)
    now = chat.ask("Go on.")
    chat.reply("Yes.")
    assert now.tokens.total <= SHARE * turn.tokens.total + 100
    prompt = "\n".join(message.text for message in now.messages)
    held = [one.needle in prompt for one in evidence]
    found = [there or is_recalled(chat, one) for one, there in zip(evidence, held, strict=True)]
    wishes = [there for one, there in zip(evidence, held, strict=True) if one.kind == "instruction"]
    texts = [text for pair in talk for text in pair]
    room = int(SHARE * sum(map(len, texts)))
    newest = "\n".join(texts)[-room:]
    return Kept(
        prompt=_share(held),
        reached=_share(found),
        wishes=_share(wishes),
        newest=_share([one.needle in newest for one in evidence]),
        searched=_share(list(search_plainly(texts, evidence, room=room))),
    )


def is_recalled(chat: Conversation, one: Evidence) -> bool:
    """Whether a fact is among the hits for its question."""
    return any(one.needle in hit.passage.text for hit in chat.recall(one.question, limit=HITS))


def search_plainly(texts: Sequence[str], evidence: Sequence[Evidence], *, room: int) -> Iterator[bool]:
    """Whether plain full-text search for each question, with nothing else in the prompt, puts its fact there."""
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE VIRTUAL TABLE said USING fts5(text)")
        base.executemany("INSERT INTO said VALUES (?)", [(text,) for text in texts])
        for one in evidence:
            words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", one.question))
            left, there = room, False
            for (text,) in base.execute("SELECT text FROM said WHERE said MATCH ? ORDER BY rank", (words,)):
                left -= len(text)
                if left < 0 or there:
                    break
                there = one.needle in text
            yield there


def _share(held: Sequence[bool]) -> float:
    return sum(held) / len(held)


def bench_evidence(verdicts: Verdicts) -> None:
    """Seeds that were looked at while tuning, then those that were not, which are judged."""
    print("evidence: the talk is " + ("real, stretched" if load_texts().real else "made: ../shared/data is not there"))
    for tokens in SIZES:
        print(f"{tokens:,} tokens, at least {FACTS} facts a seed, at {SHARE:.0%} of the tokens", flush=True)
        judged: list[Kept] = []
        for name, seeds in (("tuned", TUNED), ("held back", HELD_BACK)):
            for seed in seeds:
                kept = probe(seed, tokens)
                print(
                    f"  seed {seed} ({name}): prompt {kept.prompt:.2f}, or {HITS} hits {kept.reached:.2f}, wishes"
                    f" {kept.wishes:.2f}; newest quarter {kept.newest:.2f}, plain search {kept.searched:.2f}",
                    flush=True,
                )
                judged += [kept] if name == "held back" else []
        for what, values, least in (
            ("in the prompt", [one.prompt for one in judged], 0.85),
            (f"in the prompt or among {HITS} hits", [one.reached for one in judged], 0.92),
            ("standing instructions in the prompt", [one.wishes for one in judged], 0.95),
        ):
            verdicts.at_least(f"{tokens:,} tokens: share of the evidence, {what}", sum(values) / len(values), least)
