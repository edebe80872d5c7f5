"""What is planted into talk and asked for later: statements, updates, preferences, instructions, orders of events.

Which facts there are, how each is worded and what it is about is the seed's. Most are said by the user, as in public
sets of long conversations, and some only in a reply.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

# How many of ten facts are said in a reply; public sets have 21 to 24 of a hundred there.
_REPLIED = 0.22

_QUALITIES = (
    *("amber", "brisk", "copper", "distant", "eastern", "frozen", "gentle", "hollow", "inland", "jagged", "lower"),
    *("marble", "narrow", "olive", "pewter", "quiet", "rustic", "silver", "tidal", "upper", "violet", "wooden"),
)
_THINGS = (
    *("anchor", "bakery", "cellar", "depot", "estuary", "ferry", "gallery", "hangar", "inn", "jetty", "kiosk"),
    *("library", "mill", "nursery", "observatory", "pavilion", "quarry", "reservoir", "studio", "turbine", "viaduct"),
)
_PEOPLE = (
    *("Alice", "Bima", "Chandra", "Dewi", "Emil", "Farah", "Gita", "Hana", "Ilse", "Joko", "Karim", "Lena", "Mateo"),
    *("Nadia", "Omar", "Putri", "Quentin", "Rosa", "Stefan", "Tuti"),
)
_DEEDS = ("surveyed", "painted", "insured", "leased", "repaired", "photographed", "audited", "measured")
_FORMS = ("a table", "metric units", "British spelling", "three bullet points", "formal language", "plain text")
_TOPICS = ("costs", "permits", "deadlines", "suppliers", "safety", "insurance", "staffing", "logistics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A sentence that holds a fact, by whom it is said, what must be read of it, and a question to it.

    Sentences of one ``group`` are said in its order, each in a later turn than the one before.
    """

    kind: str
    sentence: str
    needle: str
    question: str
    group: int
    replied: bool = False


def make_evidence(seed: int, count: int) -> tuple[Evidence, ...]:
    """At least so many sentences; an update comes with what it replaces, an order of events with each of them."""
    random = Random(seed)
    names = [f"{quality} {thing}" for quality in _QUALITIES for thing in _THINGS]
    random.shuffle(names)
    makers = (_state, _update, _prefer, _instruct, _order)
    planted: list[Evidence] = []
    for number, name in enumerate(names):
        if len(planted) >= count:
            break
        if random.random() < _REPLIED:
            planted.append(_answer(random, name, number))
        else:
            planted += makers[number % len(makers)](random, name, number)
    return tuple(planted)


def _value(random: Random) -> str:
    """Something exact: an amount, a day, an id, a time."""
    makers: tuple[Callable[[], str], ...] = (
        lambda: f"{random.randrange(2, 99)},{random.randrange(100, 999)} euros",
        lambda: f"{random.randrange(1, 28)} {random.choice(('March', 'June', 'October'))}",
        lambda: f"{random.choice('BDKMRT')}-{random.randrange(100, 9_999)}",
        lambda: f"{random.randrange(7, 20)}:{random.choice(('05', '20', '35', '50'))}",
        lambda: f"{random.randrange(12, 480)} crates",
    )
    return random.choice(makers)()


def _typed(kind: str, sentence: str, question: str, group: int) -> Evidence:
    return Evidence(kind=kind, sentence=sentence, needle=sentence, question=question, group=group)


def _state(random: Random, name: str, number: int) -> Iterator[Evidence]:
    who, value = random.choice(_PEOPLE), _value(random)
    sentence = random.choice(
        (
            f"I agreed with {who} on {value} for the {name}.",
            f"My cousin {who} runs the {name}, and the figure we wrote down is {value}.",
            f"For the {name} we are at {value} now, says {who}.",
        )
    )
    yield _typed("statement", sentence, f"What did we write down for the {name}?", number)


def _update(random: Random, name: str, number: int) -> Iterator[Evidence]:
    who = random.choice(_PEOPLE)
    before, after = _value(random), _value(random)
    question = f"What holds for the {name} now?"
    yield _typed("update", f"{who} put down {before} for the {name}.", question, number)
    newer = random.choice((f"Correction: it is {after} for the {name}.", f"The {name} changed to {after}, by the way."))
    yield _typed("update", newer, question, number)


def _prefer(random: Random, name: str, number: int) -> Iterator[Evidence]:
    who, other = random.sample(_PEOPLE, 2)
    sentence = random.choice(
        (
            f"I prefer to visit the {name} with {who} rather than with {other}.",
            f"I'd rather take {who} along to the {name}.",
            f"At the {name} I like the seats near {who} best.",
            f"I enjoy the {name} most when {who} is there.",
        )
    )
    yield _typed("preference", sentence, f"With whom would I like to go to the {name}?", number)


def _instruct(random: Random, name: str, number: int) -> Iterator[Evidence]:
    topic, form = random.choice(_TOPICS), random.choice(_FORMS)
    sentence = random.choice(
        (
            f"Always use {form} when I ask about {topic} of the {name}.",
            f"From now on mention the {name} whenever {topic} come up.",
            f"Never leave out the {name} in answers about {topic}.",
            f"Please remember to give {topic} of the {name} in {form}.",
            f"Each time we talk about {topic}, start with the {name}.",
        )
    )
    # What it is asked for with shares no word with the rule.
    yield _typed("instruction", sentence, "How should the next summary be written?", number)


def _order(random: Random, name: str, number: int) -> Iterator[Evidence]:
    deeds = random.sample(_DEEDS, 3)
    for when, deed in zip(("first", "after that", "in the end"), deeds, strict=True):
        sentence = f"The {name} was {deed} {when}, {random.choice(_PEOPLE)} told me."
        yield _typed("order", sentence, f"In which order was what done to the {name}?", number)


def _answer(random: Random, name: str, number: int) -> Evidence:
    """Said in a reply: with something exact in it, or without anything that an outline could know by its form."""
    who, value = random.choice(_PEOPLE), _value(random)
    if random.random() < 0.5:
        sentence = f"The {name} is down for {value} in the name of {who}."
        return Evidence(
            kind="answer",
            sentence=sentence,
            needle=value,
            question=f"What is the {name} down for?",
            group=number,
            replied=True,
        )
    sentence = f"The council gave the {name} to {who} after a long debate."
    return Evidence(
        kind="answer",
        sentence=sentence,
        needle=sentence,
        question=f"Who was given the {name}?",
        group=number,
        replied=True,
    )
