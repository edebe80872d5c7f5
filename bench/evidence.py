"""Evidence: how much of what is asked for later is still there at a quarter of the tokens, by three rules.

Talk of a given size is made from a seed: short questions, long answers full of other ids, numbers and paths, and
facts of the kinds that people ask for later. Where which fact stands is the seed's. Half of the seeds were looked at
while the chain was tuned; the other half is what is judged.
"""

from dataclasses import dataclass
from random import Random

from bench.text import make_text
from bench.verdicts import Verdicts
from lamella import Conversation

TUNED, HELD_BACK = (1, 2), (3, 4)
SIZES = (100_000, 500_000)
SHARE = 0.25
HITS = 10
FACTS = 120
_TYPED, _ANSWERED = 150, 1_900
_CHARACTERS = 4.6
_NAMES = ("harbour", "tower", "orchard", "quarry", "lantern", "meadow", "bridge", "castle", "engine", "garden")
_OWNERS = ("Alice", "Bima", "Chandra", "Dewi", "Emil", "Farah", "Gita", "Hana", "Ilse", "Joko")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A sentence that holds a fact, by whom it is said, what must be read of it, and a question to it."""

    kind: str
    sentence: str
    needle: str
    question: str
    replied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Shares of the evidence: in the prompt, there or among the hits of a search, and of wishes in the prompt."""

    prompt: float
    reached: float
    wishes: float
    newest: float
    searched: float


def make_evidence(seed: int, count: int = FACTS) -> tuple[Evidence, ...]:
    """Statements, updates, preferences, instructions and orders of events; every fifth is said in a reply."""
    random = Random(seed)
    return tuple(_make(number, random) for number in range(count))


def _make(number: int, random: Random) -> Evidence:
    name, owner = f"{random.choice(_NAMES)} {number}", random.choice(_OWNERS)
    value = f"K-{random.randrange(100, 999)}{number}"
    if number % 5 == 0:
        # Of what is said in a reply, every second fact has nothing exact in it that an outline could keep.
        sentence = f"The {name} is booked under {value} for {owner}."
        plain = f"The council gave the {name} to {owner} after a long debate."
        needle = value if number % 2 else plain
        told = sentence if number % 2 else plain
        return Evidence(kind="answer", sentence=told, needle=needle, question=f"who has the {name}", replied=True)
    match number % 25 // 5:
        case 0:
            sentence = f"The {name} belongs to {owner} and has the code {value}."
            return Evidence(kind="statement", sentence=sentence, needle=sentence, question=f"code of the {name}")
        case 1:
            sentence = f"Correction: the {name} moved to {owner}, its code is {value} now."
            return Evidence(kind="update", sentence=sentence, needle=sentence, question=f"newest code of the {name}")
        case 2:
            sentence = f"I prefer the {name} in plan {value} rather than any other."
            return Evidence(kind="preference", sentence=sentence, needle=sentence, question=f"plan for the {name}")
        case 3:
            sentence = f"From now on always mention {value} when the {name} comes up."
            return Evidence(kind="instruction", sentence=sentence, needle=sentence, question="how to write the summary")
        case _:
            sentence = f"First {owner} opened the {name}, then came {value}, then the audit."
            return Evidence(kind="order", sentence=sentence, needle=sentence, question=f"what followed on the {name}")


def talk(seed: int, tokens: int) -> tuple[Conversation, tuple[Evidence, ...], list[tuple[str, str]]]:
    """A conversation of about so many tokens with the evidence spread over it, and what was said in it."""
    evidence, random = make_evidence(seed), Random(seed + 1_000)
    turns = int(tokens * _CHARACTERS / (_TYPED + _ANSWERED))
    places: dict[int, list[Evidence]] = {}
    for one in evidence:
        # The last turns would be kept by any rule.
        places.setdefault(random.randrange(int(turns * 0.9)), []).append(one)
    chat = Conversation(system="You are a careful assistant.", layout="in_place", window=4 * tokens, ledger=False)
    said: list[tuple[str, str]] = []
    for number in range(turns):
        here = places.get(number, [])
        typed = " ".join(one.sentence for one in here if not one.replied)
        inside = " ".join(one.sentence for one in here if one.replied)
        asked = f"{typed} {make_text(seed * 7_919 + number, _TYPED)}".strip()
        # Without the heading of the text, whose number would be one more exact word.
        body = make_text(seed * 104_729 + number, _ANSWERED).partition("\n\n")[2]
        middle = body.find("\n", len(body) // 2) + 1
        answered = f"{body[:middle]}{_distract(random)}\n{inside}\n{body[middle:]}"
        chat.ask(asked)
        chat.reply(answered)
        said.append((asked, answered))
    return chat, evidence, said


def _distract(random: Random) -> str:
    """What competes with the evidence for the room that an outline has: as exact, and never asked for.

    Seven a reply: replies of this length have four exact words in plain chats and nine in work with tools (2026-11-17).
    """
    ids = ", ".join(f"{random.choice('ABCDEFGH')}-{random.randrange(10, 9_999)}" for _ in range(4))
    where = f"part {random.randrange(10, 99)} of notes/{random.randrange(999)}.md"
    return f"See {ids}, {where}, by 2026-{random.randrange(1, 13):02}-15."


def probe(seed: int, tokens: int) -> Kept:
    """What three rules keep of the same talk at the same share of its tokens."""
    chat, evidence, said = talk(seed, tokens)
    turn = chat.ask("Where are we?")
    chat.reply("On the way.")
    total = turn.tokens.total
    chat.compact(SHARE * total / turn.tokens.limit)
    turn = chat.ask("Go on.")
    chat.reply("Yes.")
    prompt = "\n".join(message.text for message in turn.messages)
    held = [one.needle in prompt for one in evidence]
    found = [
        there or any(one.needle in hit.passage.text for hit in chat.recall(one.question, limit=HITS))
        for one, there in zip(evidence, held, strict=True)
    ]
    wishes = [there for one, there in zip(evidence, held, strict=True) if one.kind == "instruction"]
    room = int(SHARE * sum(len(text) for pair in said for text in pair))
    newest = "\n".join(text for pair in said for text in pair)[-room:]
    return Kept(
        prompt=_share(held),
        reached=_share(found),
        wishes=_share(wishes),
        newest=_share([one.needle in newest for one in evidence]),
        searched=_search(chat, evidence, total=total, limit=turn.tokens.limit, room=room),
    )


def _search(chat: Conversation, evidence: tuple[Evidence, ...], *, total: int, limit: int, room: int) -> float:
    """What a plain search for each question would put into a quarter of the tokens, with nothing else in the prompt."""
    chat.undo()
    chat.compact(0.01 * total / limit)
    held: list[bool] = []
    for one in evidence:
        left, there = room, False
        for hit in chat.recall(one.question, limit=1_000):
            left -= len(hit.passage.text)
            if left < 0:
                break
            there = there or one.needle in hit.passage.text
        held.append(there)
    return _share(held)


def _share(held: list[bool]) -> float:
    return sum(held) / len(held)


def bench_evidence(verdicts: Verdicts) -> None:
    """Seeds that were looked at while tuning, then those that were not, which are judged."""
    for tokens in SIZES:
        print(f"evidence, {tokens:,} tokens, {FACTS} facts a seed, at {SHARE:.0%} of the tokens", flush=True)
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
