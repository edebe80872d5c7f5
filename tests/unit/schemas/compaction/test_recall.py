"""What was found again, as data."""

from tests.bodies import as_json
from tests.contracts.repository import doc
from tests.contracts.tables import names

from lamella.core.search.index import Passage
from lamella.core.search.search import RecallHit
from lamella.ports import ConversationSummary
from lamella.schemas.compaction import recall_everywhere_to_json, recall_to_json

PASSAGE = Passage(id="garden.md", place="turn 1", role="note", title="garden.md", text="Beans along the fence.")


def test_recall_json_has_documented_fields_best_first() -> None:
    found = [
        RecallHit(passage=PASSAGE, score=2.5, excerpt="Beans"),
        RecallHit(passage=PASSAGE, score=1.0, excerpt="fence"),
    ]
    body = as_json(recall_to_json("garden", "beans", found))
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
    (first, _) = body["found"]
    assert [*first] == names(doc("reference/json-output.md"), under="RecallHitJson")
    listed = ConversationSummary(conversation="k1", name="garden", title="Beans", created="", updated="", version=2)
    everywhere = as_json(recall_everywhere_to_json("beans", [(listed, one) for one in found]))
    assert everywhere["query"] == "beans"
    (one, _) = everywhere["found"]
    assert one == {"conversation": "k1", "name": "garden", "chat_title": "Beans", **first}


def test_empty_recall_json_is_empty_list() -> None:
    assert as_json(recall_to_json("garden", "beans", []))["found"] == []
