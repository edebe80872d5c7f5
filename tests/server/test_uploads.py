"""Uploaded files and pictures, names to attach, titles by the model, and requests as they would have been."""

from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.server.running import RunningServer, running

from lamella.attach import Note
from lamella.server.state import OPERATOR
from lamella.server.thumbnails import make_thumbnail
from lamella.testing import ScriptedProvider

PICTURE = Path("examples/vault/images/floor-plan.png")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    (tmp_path / "beds.md").write_text(
        "# Beds\n\n## North side\n\nBeans.\n\n## South side\n\nLeeks.\n", encoding="utf-8"
    )
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "beds.md").write_text("# Other beds\n", encoding="utf-8")
    with running(
        "memory:", ScriptedProvider("A.", '# "Beans in May."\nIt is about beans.', "B."), vault=tmp_path
    ) as one:
        yield one


def upload(server: RunningServer, key: str, *files: tuple[str, bytes]) -> Any:  # noqa: ANN401 - any JSON
    path = f"/v1/conversations/{key}/attachments/files"
    return server.client.post(path, files=[("files", one) for one in files])


def test_uploaded_pictures_and_texts_wait_for_the_next_turn(server: RunningServer) -> None:
    key, data = server.begin("files"), PICTURE.read_bytes()
    answer = upload(server, key, ("../plan.md", data), ("list.txt", b"\xef\xbb\xbfseeds"), ("rows", b"1,2"))
    assert answer.status_code == 200, answer.text
    waiting = answer.json()["waiting"]["attach"]
    assert [(one["kind"], one["title"]) for one in waiting] == [
        ("image", "plan.md"),
        ("note", "list"),
        ("note", "rows"),
    ]
    path = f"/v1/conversations/{key}/images/{waiting[0]['id']}"
    shown = server.client.get(path)
    assert (shown.content, shown.headers["content-type"]) == (data, "image/png")
    assert shown.headers["content-security-policy"] == "default-src 'none'"
    assert shown.headers["x-content-type-options"] == "nosniff"
    server.ask(key, "What is this?")
    assert server.client.get(path).status_code == 404
    assert server.client.get(path, params={"turn": 1}).content == data
    assert server.client.get(path, params={"turn": 2}).status_code == 404
    assert "seeds" in str(server.client.get(f"/v1/conversations/{key}/turns/1").json()["messages"])


def test_file_that_is_neither_picture_nor_text_is_refused_with_a_hint(server: RunningServer) -> None:
    key = server.begin("files")
    answer = upload(server, key, ("a.bin", b"\0\1\2\3"))
    assert answer.status_code == 400
    assert answer.json()["error"]["hint"].startswith("Use one of: image/png")
    assert server.client.post(f"/v1/conversations/{key}/attachments/files", json={}).status_code == 422
    attached = server.client.get(f"/v1/conversations/{key}/attachments").json()
    assert attached["waiting"]["attach"] == []


def test_headings_complete_after_the_name_of_a_note(server: RunningServer) -> None:
    def complete(word: str) -> list[str]:
        found: list[str] = server.client.get("/v1/notes/complete", params={"q": word}).json()["headings"]
        return found

    assert complete("beds.md#") == ["beds.md#Beds", "beds.md#North side", "beds.md#South side"]
    assert complete("beds.md#SOUTH") == ["beds.md#South side"]
    assert complete("plans/beds#other") == ["plans/beds.md#Other beds"]
    # No note is called so, there is no name, and no heading was begun.
    assert [complete("nothing#"), complete("#side"), complete("beds.md")] == [[]] * 3
    key = server.begin("heading")
    server.client.post(f"/v1/conversations/{key}/attachments", json={"attach": ["beds.md#South side"]})
    server.ask(key, "What grows there?")
    sent = str(server.client.get(f"/v1/conversations/{key}/turns/1").json()["messages"])
    assert "Leeks." in sent
    assert "Beans." not in sent


def test_model_writes_a_title_without_markup(server: RunningServer) -> None:
    key = server.begin("titled")
    empty = server.client.post(f"/v1/conversations/{key}/title")
    assert (empty.status_code, empty.json()["error"]["message"]) == (400, "Nothing was said yet.")
    server.ask(key, "When do we sow beans, if the frost comes late?")
    written = server.client.post(f"/v1/conversations/{key}/title").json()
    assert written["title"] == "Beans in May"
    assert server.client.get(f"/v1/conversations/{key}").json()["title"] == "Beans in May"


def test_title_stays_if_no_model_writes_one(server: RunningServer) -> None:
    key = server.begin("titled", title="Mine", settings={"summarizer": "off"})
    server.ask(key, "When do we sow beans?")
    assert server.client.post(f"/v1/conversations/{key}/title").json()["title"] == "Mine"


def test_requests_are_shown_as_they_would_have_been(server: RunningServer) -> None:
    key = server.begin("supposed", settings={"layout": "in_place"})
    server.ask(key, "First?", attach=["beds.md"])
    server.ask(key, "Second?")
    path = f"/v1/conversations/{key}/strata"
    sent = server.client.get(path).json()["turns"]
    prices = server.client.get("/v1/prices").json()["data"]
    assert all(one["prices"] for one in prices)
    assert "anthropic:claude-opus-5-5" in [one["id"] for one in prices]
    query = {"layout": "library", "model": "anthropic:claude-opus-5-5"}
    supposed = server.client.get(path, params=query).json()["turns"]
    assert [one["prefix"]["cause"] for one in sent] == ["first_turn", "none"]
    assert [one["prefix"]["cause"] for one in supposed] == ["first_turn", "artifact_added"]
    assert [(one["cost"] is None, one["cache"]["reported"]) for one in sent] == [(True, None)] * 2
    assert [(one["cost"] is None, one["cache"]["reported"]) for one in supposed] == [(False, None)] * 2
    assert [one["turn"] for one in server.client.get(path, params={**query, "from": 2}).json()["turns"]] == [2]
    # What was sent is as before.
    assert server.client.get(path).json()["turns"] == sent


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({"layout": "nowhere"}, 400, "There is no layout 'nowhere'."),
        ({"model": "gguf:/etc/passwd"}, 404, "No price is known for 'gguf:/etc/passwd'."),
        ({"model": "openai-compatible:http://127.0.0.1:1#x"}, 404, "No price is known"),
    ],
)
def test_supposed_request_names_a_layout_and_a_priced_model(
    server: RunningServer, query: dict[str, str], status: int, words: str
) -> None:
    key = server.begin("supposed")
    server.ask(key, "First?")
    answer = server.client.get(f"/v1/conversations/{key}/strata", params=query)
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_preview_tries_a_pin(server: RunningServer) -> None:
    key = server.begin("pinned")
    server.ask(key, "First?", attach=["beds.md"])
    path = f"/v1/conversations/{key}/preview"
    now = server.client.post(path, json={"text": ""}).json()["tokens"]["total"]
    pinned = server.client.post(path, json={"text": "", "pin": ["beds.md"]})
    assert pinned.status_code == 200
    assert pinned.json()["tokens"]["total"] >= now
    assert server.client.post(path, json={"text": "", "pin": ["nothing.md"]}).status_code == 400
    assert server.client.get(f"/v1/conversations/{key}/attachments").json()["waiting"]["pin"] == []


def test_preview_reads_a_note_again_and_leaves_what_cannot_be_read(server: RunningServer, tmp_path: Path) -> None:
    key = server.begin("again")
    server.ask(key, "First?", attach=["beds.md", {"kind": "note", "path": "typed.md", "text": "Only typed."}])
    path = f"/v1/conversations/{key}/preview"

    def count(**more: list[str]) -> int:
        total: int = server.client.post(path, json={"text": "", **more}).json()["tokens"]["total"]
        return total

    now = count()
    assert count(refresh=["beds.md", "typed.md"]) == now
    (tmp_path / "beds.md").write_text("# Beds\n\nAll new.\n" + "And longer than before.\n" * 20, encoding="utf-8")
    assert count(refresh=["typed.md"]) == now
    assert count(refresh=["beds.md"]) > now


def test_preview_knows_that_the_cache_has_expired(tmp_path: Path) -> None:
    with running("memory:", ScriptedProvider(), model="anthropic:claude-opus-5-5") as server:
        long = Note(path="long.md", text="Sow the beans in May, in rows. " * 2_000)
        begun = {"fresh": datetime.now(UTC), "old": datetime(2026, 11, 1, tzinfo=UTC)}
        reads = {}
        for name, at in begun.items():
            chat = server.state.get_engine(OPERATOR).create(name, model="anthropic:claude-opus-5-5")
            chat.ask("When?", attach=[long], at=at)
            chat.reply("In May.", at=at)
            answer = server.client.post(f"/v1/conversations/{name}/preview", json={"text": "And then?"}).json()
            reads[name] = answer["cache"]["read"]
        assert reads["fresh"] > 10_000
        assert reads["old"] == 0


def test_compaction_between_two_turns_is_named_by_the_turn_after_it(server: RunningServer) -> None:
    chat = server.state.get_engine(OPERATOR).create("compacted", summarizer="off")
    for number in range(4):
        chat.ask(f"Question {number}?")
        chat.reply("It is said at some length. " * 60)
    receipt = chat.compact(to=0.0001)
    assert receipt is not None

    def list_compactions() -> list[str | None]:
        return [one["compaction"] for one in server.client.get("/v1/conversations/compacted/strata").json()["turns"]]

    assert list_compactions() == [None] * 4
    chat.ask("And now?")
    chat.reply("Nothing.")
    assert list_compactions() == [None] * 4 + [receipt.id]
    second = chat.compact(to=0.00001)
    if second is not None:
        chat.undo()
    chat.ask("And then?")
    assert list_compactions() == [None] * 4 + [receipt.id, None]


def _draw(width: int, height: int, kind: str, **more: Any) -> bytes:  # noqa: ANN401 - options of the format
    output = BytesIO()
    noise = Image.effect_noise((width, height), 60).convert("P" if kind == "GIF" else "RGB")
    noise.save(output, kind, **more)
    return output.getvalue()


@pytest.mark.parametrize(("kind", "media_type"), [("PNG", "png"), ("JPEG", "jpeg"), ("WEBP", "webp"), ("GIF", "gif")])
def test_thumbnail_is_small_and_the_picture_stays_as_it_was_sent(
    server: RunningServer, kind: str, media_type: str
) -> None:
    key, data = server.begin("small"), _draw(1600, 900, kind)
    (waiting,) = upload(server, key, (f"a.{media_type}", data)).json()["waiting"]["attach"]
    path = f"/v1/conversations/{key}/images/{waiting['id']}"
    small = server.client.get(path, params={"thumbnail": True})
    assert small.headers["content-type"] == "image/webp"
    assert len(small.content) < len(data) / 5
    assert Image.open(BytesIO(small.content)).size == (384, 216)
    full = server.client.get(path)
    assert (full.content, full.headers["content-type"]) == (data, f"image/{media_type}")


def test_thumbnail_stands_upright_and_has_no_metadata(server: RunningServer) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "Where I live"
    key, data = server.begin("turned"), _draw(1600, 900, "JPEG", exif=exif)
    (waiting,) = upload(server, key, ("a.jpg", data)).json()["waiting"]["attach"]
    path = f"/v1/conversations/{key}/images/{waiting['id']}"
    small = server.client.get(path, params={"thumbnail": True}).content
    assert Image.open(BytesIO(small)).size == (216, 384)
    assert b"Where I live" in data
    assert b"Where I live" not in small


def test_small_picture_is_its_own_thumbnail(server: RunningServer) -> None:
    key, small = server.begin("odd"), _draw(200, 100, "PNG")
    (waiting,) = upload(server, key, ("small.png", small)).json()["waiting"]["attach"]
    shown = server.client.get(f"/v1/conversations/{key}/images/{waiting['id']}", params={"thumbnail": True})
    assert (shown.content, shown.headers["content-type"]) == (small, "image/png")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_damaged_picture_has_no_thumbnail(kind: str) -> None:
    whole = _draw(1600, 900, kind)
    for damaged in (whole[: len(whole) // 2], whole[:40], whole[:30] + b"\xff" * 500, b"", b"<svg onload=hit()>"):
        assert make_thumbnail(damaged, width=1600, height=900) is None


def test_picture_that_would_take_too_much_memory_is_not_decoded() -> None:
    header = bytearray(_draw(8, 8, "PNG"))
    header[16:24] = (60_000).to_bytes(4, "big") * 2
    # What the caller knows and what the header says: the larger one counts.
    assert make_thumbnail(bytes(header), width=1600, height=900) is None
    assert make_thumbnail(_draw(1600, 900, "PNG"), width=60_000, height=60_000) is None
