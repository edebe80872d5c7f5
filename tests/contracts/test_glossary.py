"""The glossary has every tag of prompts, every layer and layout, and the field names that other programs rely on."""

import re

from tests.contracts.repository import DOCS, ROOT, doc

from lamella.core.artifacts.blocks import _OWN_TAGS
from lamella.core.artifacts.kinds import KINDS
from lamella.core.log.turn import LayoutMode
from lamella.core.prompt.layers.model import LayerId

TAG = re.compile(r"</([a-z]+(?:_[a-z]+)*)>")


def words() -> set[str]:
    return {word for span in re.findall(r"`([^`]+)`", doc("glossary.md")) for word in span.split()}


def test_glossary_has_every_tag_of_prompts() -> None:
    golden = {
        tag
        for path in (ROOT / "tests" / "golden").rglob("*.json")
        for tag in TAG.findall(path.read_text(encoding="utf-8"))
    }
    assert len(golden) > 10
    assert sorted({*_OWN_TAGS, *(spec.tag for spec in KINDS.values()), *golden} - words()) == []


def test_glossary_has_every_layer_and_layout() -> None:
    assert {*(layer.value for layer in LayerId), *(layout.value for layout in LayoutMode)} <= words()


def test_glossary_has_the_fields_of_a_replay() -> None:
    text = (DOCS / "reference" / "json-output.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^### EnvelopeJson$(.*?)^### ", text, re.MULTILINE | re.DOTALL)
    fields = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert fields
    assert sorted(fields - words()) == []
