"""Facts that are asked for in other words than they were said in: other forms, accents, notations and names.

Which facts there are is seeded. Even seeds were looked at while rules of recall were chosen; the others are reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

TUNED_ON, REPORTED = (0, 2, 4), (1, 3, 5)

# What is said, and what is asked.
_THINGS = (
    *(("turbines", "turbine"), ("committee", "committees"), ("batteries", "battery"), ("engineer", "engineers")),
    *(("bridges", "bridge"), ("libraries", "library"), ("windows", "window"), ("policy", "policies")),
    *(("classes", "class"), ("supplier", "suppliers"), ("mosquitoes", "mosquito"), ("analyses", "analysing")),
)
_DOES = (
    *(("vibrated", "vibrating"), ("decides", "decided"), ("were replaced", "replacing"), ("complained", "complaints")),
    *(("was measured", "measurement"), ("is organised", "organising"), ("were tested", "tests"), ("runs", "running")),
    *(("arrived", "arriving"), ("failed", "failing"), ("was translated", "translation"), ("stops", "stopped")),
)
_PLACES = (
    *(("harbours", "harbour"), ("valley", "valleys"), ("warehouses", "warehouse"), ("cities", "city")),
    *(("Zürich", "Zurich"), ("Malmö", "malmo"), ("İzmir", "izmir"), ("Łódź", "lodz"), ("São Paulo", "sao paulo")),
    *(("offices", "office"), ("stations", "station"), ("the co-op", "coop")),
)
_BERBUAT = (
    *(("mengirimkan", "dikirim"), ("melaporkan", "laporan"), ("bekerja", "pekerjaan"), ("membaca", "bacaan")),
    *(("menjelaskan", "penjelasan"), ("memakai", "pemakaian"), ("mendengarkan", "pendengar"), ("dibangun", "bangunan")),
)
_BENDA = (
    *(("bukunya", "buku"), ("rumahnya", "rumah"), ("suratnya", "surat"), ("mesinnya", "mesin")),
    *(("jalanan", "jalan"), ("makanan", "makan"), ("gambarnya", "gambar"), ("kotanya", "kota")),
)
_PARTS = ("user", "harbour", "invoice", "ticket", "window", "report", "order", "sensor", "batch", "label")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewordedFact:
    """What was said, the exact part of it, and a question that has none of its words as they were said."""

    sentence: str
    exact: str
    question: str


def make_reworded(seed: int, count: int) -> tuple[RewordedFact, ...]:
    """So many facts, no two of them about the same."""
    found: dict[str, RewordedFact] = {}
    for fact in _draw(Random(seed)):
        found.setdefault(fact.question, fact)
        if len(found) == count:
            break
    return tuple(found.values())


def _draw(chance: Random) -> Iterator[RewordedFact]:
    number = chance.randrange(1_000, 2_000)
    while True:
        number += chance.randrange(3, 90)
        match chance.randrange(5):
            case 0 | 1:
                yield _in_english(chance, number)
            case 2:
                yield _in_indonesian(chance, number)
            case 3:
                yield _of_a_name(chance, number)
            case _:
                yield _of_a_number(chance, number)


def _in_english(chance: Random, number: int) -> RewordedFact:
    thing, does, place = chance.choice(_THINGS), chance.choice(_DOES), chance.choice(_PLACES)
    exact = f"on page K-{number}"
    sentence = f"The {thing[0]} {does[0]} near {place[0]} {exact}."
    return RewordedFact(sentence=sentence, exact=exact, question=f"{thing[1]} {does[1]} near {place[1]}")


def _in_indonesian(chance: Random, number: int) -> RewordedFact:
    does, thing, place = chance.choice(_BERBUAT), chance.choice(_BENDA), chance.choice(_PLACES[4:9])
    exact = f"nomor {number}"
    sentence = f"Mereka {does[0]} {thing[0]} di {place[0]} dengan {exact}."
    return RewordedFact(sentence=sentence, exact=exact, question=f"{does[1]} {thing[1]} {place[1]}")


def _of_a_name(chance: Random, number: int) -> RewordedFact:
    first, second, third = chance.sample(_PARTS, 3)
    camel = f"{first}{second.capitalize()}{third.capitalize()}"
    name = camel if number % 2 else f"{first}_{second}_{third}"
    exact = f"after {number} ms"
    return RewordedFact(sentence=f"Call {name}() {exact}.", exact=exact, question=f"{first} {second}s {third}")


def _of_a_number(chance: Random, number: int) -> RewordedFact:
    amount, thing = number * 1_009, chance.choice(_THINGS)
    said, asked = chance.sample([f"{amount:,}", f"{amount:,}".replace(",", "."), str(amount)], 2)
    exact = f"{said} of them"
    return RewordedFact(sentence=f"We count {thing[0]}: {exact}.", exact=exact, question=f"{thing[1]} {asked}")
