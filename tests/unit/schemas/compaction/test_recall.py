"""Recall hits as JSON."""

from tests.bodies import as_json
from tests.contracts.repository import doc
from tests.contracts.tables import names

from lamella.core.search.index import Passage
from lamella.core.search.recall import RecalledMessage, RecallHit
from lamella.ports import ConversationListItem
from lamella.schemas.compaction import recall_everywhere_to_json, recall_to_json

PASSAGE = Passage(id="garden.md", place="turn 1", role="note", title="garden.md", text="Beans along the fence.")
ASKED = RecalledMessage(
    passage=Passage(id="m1", place="turn 2", role="user", title="m1", text="Where are they?", message="m1"),
    text="Where are they?",
)


def test_recall_json_has_documented_fields_best_first() -> None:
    found = [
        RecallHit(passage=PASSAGE, score=2.5, excerpt="Beans", text=PASSAGE.text),
        RecallHit(passage=PASSAGE, score=1.0, excerpt="fence", text="the fence.", before=ASKED),
    ]
    body = as_json(recall_to_json("garden", "beans", found))
    assert body == {
        "conversation": "garden",
        "query": "beans",
        "hits": [
            {
                "text": one.text,
                "role": "note",
                "turn": 1,
                "at": None,
                "message": None,
                "id": "garden.md",
                "title": "garden.md",
                "place": "turn 1",
                "score": one.score,
                "excerpt": one.excerpt,
                "whole": one is found[0],
                "characters": len(PASSAGE.text),
                "before": None
                if one is found[0]
                else {"role": "user", "turn": 2, "message": "m1", "text": "Where are they?"},
                "after": None,
            }
            for one in found
        ],
    }
    (first, _) = body["hits"]
    assert [*first] == names(doc("reference/json-output.md"), under="RecallHitJson")
    listed = ConversationListItem(
        conversation="k1", name="garden", title="Beans", created="", updated="", event_count=2
    )
    everywhere = as_json(recall_everywhere_to_json("beans", [(listed, one) for one in found]))
    assert everywhere["query"] == "beans"
    (one, _) = everywhere["hits"]
    assert one == {"conversation": "k1", "name": "garden", "chat_title": "Beans", **first}


def test_empty_recall_json_is_empty_list() -> None:
    assert as_json(recall_to_json("garden", "beans", []))["hits"] == []
