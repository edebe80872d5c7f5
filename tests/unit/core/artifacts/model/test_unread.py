"""Artifacts whose text is read when it is asked for: the same as any other, and nothing is read before."""

from collections.abc import Collection

import pytest
from tests.unit.core.compaction.stories import note

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.model import AttachmentPolicy, LazyArtifact, LazyTexts
from lamella.core.log.events.artifact import to_lazy_artifact, to_stored_artifact
from lamella.core.values import replace

NOTES = [note("a.md", "One."), note("b.md", "not read")]


class Shop:
    """Gives texts, and knows what for."""

    def __init__(self) -> None:
        self.asked: list[Collection[str]] = []
        self.unread = LazyTexts([one.hash for one in NOTES], self._read)

    def _read(self, hashes: Collection[str]) -> dict[str, str]:
        self.asked.append(hashes)
        return {one.hash: one.text for one in NOTES}

    def give(self) -> list[LazyArtifact]:
        return [to_lazy_artifact(to_stored_artifact(one), {}, self.unread) for one in NOTES]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_lazy_artifacts_are_all_read_once_on_first_use(shop: Shop) -> None:
    first, second = shop.give()
    assert (first.id, first.hash, first.title) == (NOTES[0].id, NOTES[0].hash, NOTES[0].title)
    assert shop.asked == []
    assert (first.text, second.text, first.text) == ("One.", "not read", "One.")
    assert shop.asked == [[one.hash for one in NOTES]]


def test_lazy_artifact_equals_loaded_one(shop: Shop) -> None:
    for one, plain in zip(shop.give(), NOTES, strict=True):
        assert one == plain
        assert plain == one
        assert not one != plain  # noqa: SIM202  # a struct does not derive it
        assert not plain != one  # noqa: SIM202
    assert shop.asked == []
    for one, plain in zip(shop.give(), NOTES, strict=True):
        assert hash(one) == hash(plain)
        assert render_block(one) == render_block(plain)
    first, second = shop.give()
    assert first != second
    assert first != NOTES[1]
    assert first != "One."
    assert first == shop.give()[0]
    assert first != replace(NOTES[0], title="Another")
    # Whoever shows a part of it leaves its hash.
    assert first != replace(NOTES[0], text="On")
    assert first != replace(first, text="On")


def test_changed_lazy_artifact_stays_lazy_unless_text_is_given(shop: Shop) -> None:
    [one, _] = shop.give()
    pinned = replace(one, policy=AttachmentPolicy.PIN)
    assert (pinned.policy, shop.asked) == (AttachmentPolicy.PIN, [])
    assert pinned.text == "One."
    assert replace(one, text="").text == ""
    assert replace(one, text="Two.").text == "Two."
