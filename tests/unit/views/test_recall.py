"""What was found again, as data."""

import re

from tests.contracts.places import doc

from lamella.core.search.finding import Found
from lamella.core.search.index import Passage
from lamella.holdings import ChatListing
from lamella.views.recall import view_recall, view_recall_hits

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
                "at": None,
                "role": "note",
                "id": "garden.md",
                "message": None,
                "title": "garden.md",
                "score": one.score,
                "excerpt": one.excerpt,
                "text": "Beans along the fence.",
            }
            for one in found
        ],
    }
    line = next(line for line in doc("compaction.md").splitlines() if "`query` and `found`" in line)
    told, beyond = (set(re.findall(r"`(\w+)`", part)) for part in line.split("With `--all`"))
    (first, _) = body["found"] if isinstance(body["found"], list) else ({}, {})
    assert {*body, *first} == told
    listed = ChatListing(conversation="k1", name="garden", title="Beans", created="", updated="", version=2)
    everywhere = view_recall_hits("beans", [(listed, one) for one in found])
    assert everywhere["query"] == "beans"
    (one, _) = everywhere["found"] if isinstance(everywhere["found"], list) else ({}, {})
    assert one == {"conversation": "k1", "name": "garden", "chat_title": "Beans", **first}
    assert {*everywhere, *one} - {*body, *first} == beyond - {"conversation"}


def test_nothing_found_is_an_empty_list() -> None:
    assert view_recall("garden", "beans", [])["found"] == []
