"""Long talk played live in a small window: how much of what is asked for later is still there at its end.

Facts are planted into real talk, where it is beside the checkout, and into made-up talk elsewhere. Half of the asked
sentences are mentioned in passing, the others hold figures, names and instructions; as many sentences again are planted
and never asked for. A conversation with the default layout compacts by itself while the talk is played. At the end each
question is looked for in the prompt, and in the answer of the recall tool.

Chats of short messages between two people are cut once to a quarter, and compared with their newest quarter.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.everyday import make_chat, make_mentions
from bench.evidence import Pair, make_talk, plant
from bench.layouts.texts import load_texts
from bench.planted import Evidence, make_evidence
from bench.prefixes import extends
from bench.verdicts import Verdicts
from lamella import Conversation

# Looked at while rules were chosen, and not looked at, which are judged.
TUNED, HELD_BACK = (1, 2, 3, 4), (5, 6, 7, 8)
# Chats of short messages are small, so there are more of them.
CHATS_TUNED, CHATS_HELD_BACK = (1, 2, 3, 4, 11, 12, 13, 14), (5, 6, 7, 8, 15, 16, 17, 18)
# Tokens of the talk, share of them that is the window, facts that are asked for; and the least shares that may be left:
# in the prompt, and there or in the answer of one recall; prefix breaks per 100 requests.
CASES = (
    (100_000, 0.25, 120, (0.88, 0.91, 7.0)),
    (500_000, 0.25, 240, (0.86, 0.89, 2.0)),
    (100_000, 0.10, 120, (0.76, 0.84, None)),
)
CHAT_TURNS, CHAT_SHARE = 300, 0.25
_ASKED_SHARE = 0.5
_CHARACTERS_A_TOKEN = 4.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left of a talk: shares of the evidence in the prompt and one recall away, and how its prefix fared."""

    tokens: int
    prompt: float
    recalled: float
    in_passing: float
    typed: float
    answered: float
    breaks_per_100: float
    newest: float


def make_live_talk(seed: int, tokens: int, facts: int) -> tuple[list[Pair], list[Evidence]]:
    """Return a talk of about so many tokens and the evidence in it; what people type is a twelfth of the characters."""
    mentions = make_mentions(seed, facts)
    asked = [*make_evidence(seed, facts // 2), *mentions[: facts // 2]]
    # The groups of both kinds are numbered from 0; what is planted must not share one.
    planted = [
        *asked[: -(facts // 2)],
        *(_in_group(one, 10_000 + number) for number, one in enumerate(mentions)),
    ]
    characters = int(tokens * _CHARACTERS_A_TOKEN)
    typed = sum(len(one.sentence) + 1 for one in planted if not one.replied)
    return plant(make_talk(load_texts(), seed, characters, planted=typed), planted, seed), asked


def _in_group(one: Evidence, group: int) -> Evidence:
    return Evidence(
        kind=one.kind,
        sentence=one.sentence,
        needle=one.needle,
        question=one.question,
        group=group,
        replied=one.replied,
    )


def play_live(talk: Sequence[Pair], evidence: Sequence[Evidence], *, share: float) -> Left:
    """Play a talk in a window of a share of its tokens, and look for the evidence at its end."""
    tokens = count_tokens(talk)
    chat = Conversation(system="You are a careful assistant.", window=int(share * tokens), reserve=0, keep_ledger=False)
    requests = []
    for asked, answered in talk:
        requests.append(chat.ask(asked).messages)
        chat.reply(answered)
    last = chat.ask("Go on.")
    chat.reply("Yes.")
    breaks = sum(not extends(before, now) for before, now in pairwise([*requests, last.messages]))
    return _look_for(
        chat,
        talk,
        evidence,
        prompt="\n".join(message.text for message in last.messages),
        tokens=tokens,
        share=share,
        breaks_per_100=100 * breaks / (len(requests) + 1),
    )


def cut_once(talk: Sequence[Pair], evidence: Sequence[Evidence], *, share: float) -> Left:
    """Play a talk in a window without limits, cut it to a share of its tokens, and look for the evidence."""
    tokens = count_tokens(talk)
    chat = Conversation(system="You are a good friend.", window=4 * tokens, reserve=0, keep_ledger=False)
    for asked, answered in talk:
        chat.ask(asked)
        chat.reply(answered)
    whole = chat.ask("Where are we?")
    chat.reply("On the way.")
    chat.compact(share * whole.tokens.total / whole.tokens.limit)
    now = chat.ask("Go on.")
    chat.reply("Yes.")
    assert now.tokens.total <= share * whole.tokens.total + 100
    prompt = "\n".join(message.text for message in now.messages)
    return _look_for(chat, talk, evidence, prompt=prompt, tokens=tokens, share=share, breaks_per_100=0.0)


def _look_for(
    chat: Conversation,
    talk: Sequence[Pair],
    evidence: Sequence[Evidence],
    *,
    prompt: str,
    tokens: int,
    share: float,
    breaks_per_100: float,
) -> Left:
    there = [one.needle in prompt for one in evidence]
    recalled = [
        held or one.needle in answer_of_recall(chat, one.question) for one, held in zip(evidence, there, strict=True)
    ]
    texts = "\n".join(text for pair in talk for text in pair)
    newest = texts[-int(share * len(texts)) :]
    mentioned = [held for one, held in zip(evidence, there, strict=True) if one.kind in ("mention", "advice")]
    return Left(
        tokens=tokens,
        prompt=_mean(there),
        recalled=_mean(recalled),
        in_passing=_mean(mentioned),
        typed=_mean([held for one, held in zip(evidence, there, strict=True) if not one.replied]),
        answered=_mean([held for one, held in zip(evidence, there, strict=True) if one.replied]),
        breaks_per_100=breaks_per_100,
        newest=_mean([one.needle in newest for one in evidence]),
    )


def answer_of_recall(chat: Conversation, question: str) -> str:
    """Return what the recall tool answers a model that asks this question."""
    run = chat.recall_tool.run
    assert run is not None
    return str(asyncio.run(run(query=question)))  # type: ignore[arg-type]


def count_tokens(talk: Sequence[Pair]) -> int:
    """Return the tokens of a talk that is sent whole."""
    chat = Conversation(window=10**9, reserve=0, keep_ledger=False)
    for asked, answered in talk:
        chat.ask(asked)
        chat.reply(answered)
    return chat.ask("Go on.").tokens.total


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def bench_live(verdicts: Verdicts) -> None:
    """Long talk in windows of a quarter and a tenth, then chats of short messages."""
    print(
        "live: the talk is " + ("real, stretched" if load_texts().real else "made: ../shared/data is not there"),
        flush=True,
    )
    for tokens, share, facts, (prompt, recalled, breaks) in CASES:
        judged: list[Left] = []
        print(f"{tokens:,} tokens in a window of {share:.0%}, {facts} facts", flush=True)
        for seed in (*TUNED, *HELD_BACK):
            left = play_live(*make_live_talk(seed, tokens, facts), share=share)
            _print_left(left, seed, is_tuned=seed in TUNED)
            judged += [left] if seed in HELD_BACK else []
        name = f"{tokens:,} tokens, window of {share:.0%}"
        verdicts.at_least(f"{name}: evidence in the prompt", _mean([one.prompt for one in judged]), prompt)
        verdicts.at_least(
            f"{name}: evidence in the prompt or one recall away", _mean([one.recalled for one in judged]), recalled
        )
        if breaks is not None:
            rate = _mean([one.breaks_per_100 for one in judged])
            verdicts.at_most(f"{name}: prefix breaks per 100 requests", rate, breaks)
    judged = []
    print(f"chats of {2 * CHAT_TURNS} short messages, cut once to {CHAT_SHARE:.0%}", flush=True)
    for seed in (*CHATS_TUNED, *CHATS_HELD_BACK):
        left = cut_once(*make_chat(seed, turns=CHAT_TURNS, asked_share=_ASKED_SHARE), share=CHAT_SHARE)
        _print_left(left, seed, is_tuned=seed in CHATS_TUNED)
        judged += [left] if seed in CHATS_HELD_BACK else []
    gain = _mean([one.prompt - one.newest for one in judged])
    verdicts.at_least("short messages: evidence in the prompt, more than in the newest quarter", gain, 0.10)
    verdicts.at_least(
        "short messages: evidence in the prompt or one recall away", _mean([one.recalled for one in judged]), 0.85
    )


def _print_left(left: Left, seed: int, *, is_tuned: bool) -> None:
    print(
        f"  seed {seed}{' (tuned)' if is_tuned else ''}: {left.tokens:,} tokens, prompt {left.prompt:.3f}"
        f" (in passing {left.in_passing:.3f}, typed {left.typed:.3f}, in replies {left.answered:.3f}), or one recall"
        f" {left.recalled:.3f}; newest {left.newest:.3f},"
        f" {left.breaks_per_100:.1f} breaks per 100",
        flush=True,
    )
