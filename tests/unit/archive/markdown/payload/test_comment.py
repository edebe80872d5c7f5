"""The comment: the whole log and its contents; a damaged one is refused with the position."""

import json

import pytest
from tests.unit.archive.markdown.chats import NAME, chat, export_log, make_backend, page

from lamella.archive.markdown.payload import ArchivePayload, FileRef, parse_comment, render_comment, split_comment
from lamella.conversation.turn import TurnRequest
from lamella.core.artifacts.model import ArtifactKind
from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.text.content import hash_bytes
from lamella.errors import BadInputError
from lamella.ports import ConversationExport

ARROWS = "--> <!-- --!> ---> \u2028 \x00 </script>"


def talk() -> ConversationExport:
    backend = make_backend()
    conversation_log = chat(backend, ("one", "two"))
    conversation_log.ask(TurnRequest(text=ARROWS, attach=(page("https://example.org", ARROWS),)))
    return export_log(backend)


def inside(comment: str) -> str:
    visible, json_text = split_comment(f"text\n{comment}")
    assert visible == "text\n"
    return json_text


def render(chronicle: ConversationExport) -> str:
    return render_comment(chronicle, ArchivePayload(files=(), contents=chronicle.contents))


def test_comment_has_every_event_and_content() -> None:
    export = talk()
    parsed, files = parse_comment(inside(render(export)))
    assert parsed == export
    assert files == ()


def test_comment_cannot_be_closed_from_inside() -> None:
    comment = render(talk())
    assert comment.count("-->") == 1
    assert "--!>" not in comment
    assert comment.endswith(" -->\n")


def test_comment_is_one_json_object_with_an_event_per_line() -> None:
    export = talk()
    text = inside(render(export))
    assert json.loads(text)["lamella"] == 1
    assert sum(line.startswith('{"at":') for line in text.splitlines()) == len(export.records)


def test_new_events_leave_earlier_lines_unchanged() -> None:
    backend = make_backend()
    conversation_log = chat(backend, ("one", "two"))
    before = render(export_log(backend)).splitlines()
    conversation_log.ask(TurnRequest(text="three"))
    after = render(export_log(backend)).splitlines()
    assert [line.rstrip(",") for line in after[: len(before) - 3]] == [line.rstrip(",") for line in before[:-3]]


def test_binary_content_is_base64() -> None:
    data = b"\x89PNG\xff\x00"
    export = ConversationExport(
        conversation_key="x", title="", created="", records=(), contents={hash_bytes(data): data}
    )
    comment = inside(render(export))
    assert "iVBOR/8A" in comment
    assert parse_comment(comment)[0] == export
    for wrong in ("iVBOR\ufeff8A", "iVBOR*8A"):
        assert "cannot be read" in damaged(comment.replace("iVBOR/8A", wrong))


def test_non_canonical_body_is_restored_unchanged() -> None:
    records = tuple(
        EventRecord(kind=EventKind.STAGE, at="2026-01-01T00:00:00Z", body=body)
        for body in ('{"b": 1, "a": 2}', '{"a":1.0,"b":[NaN,1e100,-0.0]}', "[1]", '"text"', "null")
    )
    export = ConversationExport(conversation_key="x", title="", created="", records=records)
    assert parse_comment(inside(render(export)))[0] == export


def test_files_are_named_with_hash() -> None:
    export = talk()
    file = FileRef(hash=next(iter(export.contents)), kind=ArtifactKind.NOTE, path='a, "b" ].md')
    comment = render_comment(export, ArchivePayload(files=(file,), contents={}))
    assert parse_comment(inside(comment))[1] == (file,)


def damaged(text: str) -> str:
    with pytest.raises(BadInputError) as caught:
        parse_comment(text)
    assert caught.value.hint
    return caught.value.message


def test_invalid_json_is_reported_with_position() -> None:
    assert "not JSON" in damaged('{"lamella": 1,')
    assert "line 1 column 1" in damaged("nonsense")
    assert "not JSON" in damaged("[" * 100_000)


def test_unknown_missing_and_mistyped_fields_are_reported() -> None:
    good = json.loads(inside(render(talk())))
    assert "surplus: extra inputs" in damaged(json.dumps(good | {"surplus": 1}))
    assert "events: field required" in damaged(json.dumps({k: v for k, v in good.items() if k != "events"}))
    assert "events.0.kind" in damaged(json.dumps(good | {"events": [{"kind": "no", "at": "", "body": {}}]}))
    assert "title" in damaged(json.dumps(good | {"title": 1}))
    assert "the whole" in damaged("[]")


def test_another_format_is_refused() -> None:
    good = json.loads(inside(render(talk())))
    assert "format 7" in damaged(json.dumps(good | {"lamella": 7}))


def test_event_with_invalid_attachment_is_named() -> None:
    good = json.loads(inside(render(talk())))
    good["events"][-1]["body"]["attached"][0]["kind"] = "mystery"
    assert f"event {len(good['events'])}" in damaged(json.dumps(good))
    good["events"][-1]["body"]["attached"] = "none"
    assert "Expected `array`" in damaged(json.dumps(good))


def test_half_of_a_surrogate_pair_is_refused() -> None:
    good = json.loads(inside(render(talk())))
    good["events"][0]["body"]["text"] = "\ud800"
    assert "event 1" in damaged(json.dumps(good))


def test_changed_content_is_named() -> None:
    comment = inside(render(talk()))
    assert "has the hash" in damaged(comment.replace('":"-', '":"+'))
    good = json.loads(comment)
    name = next(iter(good["contents"]))
    assert "cannot be read" in damaged(json.dumps(good | {"contents": {name: {"base64": "!"}}}))


def test_event_with_missing_content_is_named() -> None:
    good = json.loads(inside(render(talk())))
    assert "of event 3 is not there" in damaged(json.dumps(good | {"contents": {}}))
    good["events"][-1]["contents"] = []
    assert "event 3 does not list the content" in damaged(json.dumps(good))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("no comment", "has 0 lamella-context comments"),
        ("<!-- lamella-context: {} -->\n<!-- lamella-context: {} -->", "has 2 lamella-context comments"),
        ('<!-- lamella-context: {"a": 1}', "not closed"),
    ],
)
def test_file_needs_exactly_one_comment_that_is_closed(body: str, what: str) -> None:
    with pytest.raises(BadInputError, match=what) as caught:
        split_comment(body)
    assert "docs/reference/formats/archive.md" in caught.value.hint


def test_text_after_the_comment_is_visible_text() -> None:
    visible, _ = split_comment("one\n<!-- lamella-context: {} -->\n\n**user**: added\n")
    assert visible == "one\n**user**: added\n"


def test_comment_names_conversation() -> None:
    assert json.loads(inside(render(talk())))["conversation"] == NAME
