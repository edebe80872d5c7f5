"""What was found again, as data."""

import re

from tests.contracts.places import doc

from lamella.core.search.finding import Found
from lamella.core.search.index import Passage
from lamella.views.recall import view_recall

PASSAGE = Passage(id="garden.md", place="turn 1", role="note", title="garden.md", text="Beans along the fence.")


def test_what_was_found_has_the_documented_fields_best_first() -> None:
    found = [Found(passage=PASSAGE, score=2.5, excerpt="Beans"), Found(passage=PASSAGE, score=1.0, excerpt="fence")]
    body = view_recall("garden", "beans", found)
    assert body == {
        "conversation": "garden",
        "query": "beans",
        "found": [
            {
                "place": "turn 1",
                "role": "note",
                "id": "garden.md",
                "title": "garden.md",
                "score": one.score,
                "excerpt": one.excerpt,
                "text": "Beans along the fence.",
            }
            for one in found
        ],
    }
    line = next(line for line in doc("compaction.md").splitlines() if "`query` and `found`" in line)
    told = set(re.findall(r"`(\w+)`", line))
    (first, _) = body["found"] if isinstance(body["found"], list) else ({}, {})
    assert {*body, *first} == told


def test_nothing_found_is_an_empty_list() -> None:
    assert view_recall("garden", "beans", [])["found"] == []
