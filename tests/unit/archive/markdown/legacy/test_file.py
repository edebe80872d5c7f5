"""Files of Obsidian Copilot: messages, notes by name, and an id that is the same each time."""

from pathlib import Path

import pytest
from tests.unit.archive.markdown.chats import (
    attached,
    export_log,
    first_asked,
    fold,
    import_log,
    make_backend,
    next_turn,
    said,
)

from lamella.archive.markdown.archive import parse_archive, render_archive
from lamella.conversation.import_export import ConversationRepository
from lamella.core.log.events.kinds import EventKind
from lamella.core.text.content import hash_text
from lamella.errors import BadInputError
from lamella.ports import ConversationExport
from lamella.sources.open_sources import make_source_opener

FRONT = """---
epoch: 1726179477500
modelKey: "gpt-5|openai"
topic: "Notes on tea"



tags:
  - copilot-conversation
---

"""
TALK = """**user**: What do my notes say?
[Context: Notes: docs/tea.md | URLs: https://example.org/tea | Web Tabs: https://a.org, https://b.org]
[Timestamp: 2024/09/12 22:17:57]

**ai**: They say:

- drink it hot


- drink it cold
[Timestamp: 2024/09/12 22:18:02]

**user**: And then?
[Timestamp: 2024/09/12 22:19:00]

**user**: Are you there?
[Timestamp: 2024/09/12 22:20:00]

**ai**: Yes.
[Timestamp: 2024/09/12 22:20:01]
"""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "tea.md").write_text("Hot #drink.", encoding="utf-8")
    (folder / "docs" / "milk, or cream.md").write_text("Cold #drink.", encoding="utf-8")
    return folder


def read(text: str, vault: Path | None = None) -> ConversationExport:
    """The conversation in a file; it comes in, verifies and goes on."""
    export = parse_archive(text, sources=make_source_opener(vault)() if vault else None)
    backend = make_backend(vault)
    assert import_log(backend, export) == "new"
    assert import_log(backend, parse_archive(text, sources=make_source_opener(vault)() if vault else None)) == "same"
    assert next_turn(backend, export.conversation_key).messages
    return export


def one(context: str, text: str = "one") -> str:
    return f"{FRONT}**user**: {text}\n[Context: {context}]\n[Timestamp: 2024/09/12 22:17:57]\n"


def test_messages_become_turns_and_keep_blank_lines(vault: Path) -> None:
    export = read(FRONT + TALK, vault)
    assert said(export) == [
        "What do my notes say?",
        "They say:\n\n- drink it hot\n\n\n- drink it cold",
        "And then?",
        "",
        "Are you there?",
        "Yes.",
    ]
    assert attached(export) == [["docs/tea.md"], [], []]


def test_title_model_and_time_come_from_front_matter(vault: Path) -> None:
    export = read(FRONT + TALK, vault)
    assert export.title == fold(export).title == "Notes on tea"
    assert export.created == "2024-09-12T22:17:57.500000Z"
    assert first_asked(export).model == "openai:gpt-5"
    assert [record.message.at for record in fold(export).branch_records()][1:] == [
        "2024-09-12T22:19:00Z",
        "2024-09-12T22:20:00Z",
    ]


def test_pages_in_foreign_archive_have_no_text_and_are_not_fetched(vault: Path) -> None:
    assert read(FRONT + TALK, vault).warnings == (
        "Message 1: the text of https://example.org/tea is not in the file, and nothing is fetched.",
        "Message 1: the text of https://a.org, https://b.org is not in the file, and nothing is fetched.",
    )


def test_windows_line_ends_do_not_matter(vault: Path) -> None:
    crlf = (FRONT + TALK).replace("\n", "\r\n")
    assert parse_archive(crlf, sources=make_source_opener(vault)()) == parse_archive(
        FRONT + TALK, sources=make_source_opener(vault)()
    )


def test_grown_chat_keeps_its_id(vault: Path) -> None:
    shorter = FRONT + TALK.partition("**user**: And then?")[0]
    backend = make_backend(vault)
    assert import_log(backend, parse_archive(shorter, sources=make_source_opener(vault)())) == "new"
    assert import_log(backend, parse_archive(FRONT + TALK, sources=make_source_opener(vault)())) == "extended"


def test_id_without_epoch_comes_from_first_message() -> None:
    ids = {
        parse_archive(text, sources=None).conversation_key for text in (TALK, TALK + "\n**user**: more", "\n" + TALK)
    }
    assert len(ids) == 1
    assert parse_archive(TALK.replace("my notes", "your notes"), sources=None).conversation_key not in ids
    assert parse_archive(FRONT + TALK, sources=None).conversation_key not in ids


def test_chat_without_topic_is_titled_by_first_words() -> None:
    assert read("**user**: What\nnow?\n").title == "What now?"
    assert read(f"**user**: {'word ' * 50}\n").title == ("word " * 50)[:59].rstrip() + "…"


def test_note_is_found_by_unique_name(vault: Path) -> None:
    for name in ("tea.md", "tea", "elsewhere/tea.md", "/home/me/vault/tea.md", "../tea.md"):
        export = read(one(f"Notes: {name}"), vault)
        assert attached(export) == [["docs/tea.md"]]
        assert export.warnings == (f"Message 1: {name} was found as docs/tea.md.",)


def test_ambiguous_note_is_omitted_and_others_kept(vault: Path) -> None:
    (vault / "tea.md").write_text("Other.", encoding="utf-8")
    export = read(one("Notes: old/tea.md, docs/tea.md"), vault)
    assert attached(export) == [["docs/tea.md"]]
    assert export.warnings == (
        "Message 1: old/tea.md is left out: it is not there, and 2 notes have its name: docs/tea.md, tea.md.",
    )


def test_missing_note_is_omitted_with_warning(vault: Path) -> None:
    assert read(one("Notes: gone.md"), vault).warnings == ("Message 1: gone.md is left out: it is not there.",)
    assert read(one("Notes: gone.md")).warnings == (
        "Message 1: gone.md is left out: no vault was given to read it from.",
    )


def test_comma_in_name_is_resolved_by_existing_file(vault: Path) -> None:
    export = read(one("Notes: docs/milk, or cream.md, docs/tea.md"), vault)
    assert attached(export) == [["docs/milk, or cream.md", "docs/tea.md"]]
    assert export.warnings == ()


def test_tags_and_folders_attach_current_notes(vault: Path) -> None:
    both = ["docs/milk, or cream.md", "docs/tea.md"]
    assert attached(read(one("Tags: #drink"), vault)) == [both]
    assert attached(read(one("Folders: docs"), vault)) == [both]
    assert attached(read(one("Notes: docs/tea.md | Tags: #drink | Folders: docs"), vault)) == [both[::-1]]


def test_missing_folders_and_unknown_groups_warn(vault: Path) -> None:
    warnings = read(one("Folders: gone | Charts: a, b"), vault).warnings
    assert warnings == (
        "Message 1: the folder gone is left out: There is no folder gone in the vault.",
        "Message 1: its context Charts is not known: a, b.",
    )
    assert read(one("Folders: docs")).warnings == (
        "Message 1: the folder docs is left out: no vault was given to read it from.",
    )


def test_unreadable_file_is_omitted_with_reason(vault: Path) -> None:
    (vault / "bad.md").write_bytes(b"\xff\xfe")
    (vault / "paper.pdf").write_bytes(b"%PDF")
    warnings = read(one("Notes: bad.md, paper.pdf"), vault).warnings
    assert warnings[0].startswith("Message 1: bad.md is left out: bad.md is not UTF-8")
    assert warnings[1].startswith("Message 1: paper.pdf is left out: Nothing here reads pdf")


def test_unreadable_times_warn() -> None:
    export = read("**user**: one\n[Timestamp: 12. September]\n\n**ai**: two\n[Timestamp: 2024/09/12 22:18:02]\n")
    assert [record.at for record in export.records] == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "2024-09-12T22:18:02Z",
    ]
    assert export.warnings == (
        "Message 1: its time '12. September' cannot be read; that of the message before is used.",
    )


def test_inlined_text_precedes_current_file(vault: Path) -> None:
    block = "<note_context>\n<path>docs/tea.md</path>\n<content>\nas it was\n</content>\n</note_context>"
    export = read(one("Notes: docs/tea.md", f"{block}\n\nWhat is it?\n<odd_block>\nx\n</odd_block>"), vault)
    assert said(export) == ["What is it?"]
    assert attached(export)[0][0] == "docs/tea.md"
    assert set(export.contents.values()) == {b"as it was", b"<odd_block>\nx\n</odd_block>"}
    assert export.warnings == (
        "Message 1: moved from its text to its attachments: 2 context blocks.",
        "Message 1: 1 block could not be read and is kept verbatim: <odd_block>.",
    )


SEARCHED = (
    '<localSearch timeRange="last week">\n<document>\n<path>a.md</path>\nfound words\n</document>\n</localSearch>'
)


def test_blocks_of_other_program_are_not_message_text() -> None:
    export = read(f"**user**: {SEARCHED}\n\nWhat is new?\n\n**ai**: This is:\n{SEARCHED}\nand no more.\n")
    assert said(export) == ["What is new?", "This is:\nand no more."]
    assert set(export.contents.values()) == {SEARCHED.encode()}
    assert export.warnings == (
        "Message 1: moved from its text to its attachments: 1 context block.",
        "Message 1: 1 block could not be read and is kept verbatim: <localSearch> of a.md.",
        "Message 2: moved from its text to the attachments of its question: 1 context block.",
        "Message 2: 1 block could not be read and is kept verbatim: <localSearch> of a.md.",
    )


def test_block_invented_by_model_is_part_of_answer() -> None:
    answer = "<my_config>\n<path>a.md</path>\n</my_config>\n<div>\nhtml\n</div>"
    export = read(f"**user**: one\n\n**ai**: {answer}\n")
    assert said(export)[1] == answer
    assert export.warnings == ()


def test_reasoning_marks_and_tool_banners_are_removed_and_counted() -> None:
    reasoning = '<!--AGENT_REASONING:complete:12:["Searching notes","Found 2 notes"]-->'
    banner = "<!--TOOL_CALL_START:c1:localSearch:Vault Search:x::false-->ran<!--TOOL_CALL_END:c1:ENC:%3Ca%3E-->"
    export = read(f"**user**: one\n\n**ai**: {reasoning}\n\n{banner}\n\n<think>\nhm\n</think>\n\nTwo.\n")
    assert said(export) == ["one", "Two."]
    assert export.warnings == ("Message 2: 2 reasoning marks and 1 tool banner of the other program are left out.",)


def test_unparsed_blocks_are_named_once_and_logged_by_hash(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = '<retrieved_document source="plans/secret.md">\nhush\n</retrieved_document>'
    blocks = "\n".join([secret, secret, *(f"<odd_{n}>\nx\n</odd_{n}>" for n in range(6))])
    with caplog.at_level("DEBUG", logger="lamella"):
        export = read(f"**user**: one\n{blocks}\n")
    assert export.warnings[1] == (
        "Message 1: 8 blocks could not be read and are kept verbatim: <retrieved_document> of plans/secret.md 2 times, "
        "<odd_0>, <odd_1>, <odd_2>, <odd_3> and 2 more."
    )
    assert len(set(caplog.messages)) == 7
    assert caplog.messages[0] == (
        f"unparsed block in message 1: tag retrieved_document, {len(secret)} characters, {hash_text(secret)}"
    )
    assert "hush" not in caplog.text
    assert "plans" not in caplog.text


def test_too_many_messages_are_refused() -> None:
    with pytest.raises(BadInputError, match="20,001 messages; at most 20,000") as caught:
        read("**user**: a\n" * 20_001)
    assert "Split it" in caught.value.hint


def test_imported_chat_is_written_as_an_archive_like_any_other(vault: Path) -> None:
    backend = make_backend(vault)
    export = parse_archive(FRONT + TALK, sources=make_source_opener(vault)())
    import_log(backend, export)
    out = export_log(backend, export.conversation_key)
    assert parse_archive(render_archive(out), sources=make_source_opener(vault)()) == out
    assert out.title == "Notes on tea"


def test_text_without_conversation_is_refused() -> None:
    for text in ("", "# A note\n\nwith text\n", FRONT):
        with pytest.raises(BadInputError, match="no archive of a conversation") as caught:
            parse_archive(text, sources=None)
        assert "docs/reference/formats/archive.md" in caught.value.hint


def test_text_before_first_message_is_omitted_with_warning() -> None:
    assert read("# Chat\n\n**user**: one\n").warnings == (
        "The text before the first message belongs to no message and is left out.",
    )


def test_unpaired_answers_are_kept() -> None:
    export = read("**ai**: hello\n\n**ai**: again\n\n**user**: one\n")
    assert said(export) == ["", "hello\n\nagain", "one"]
    assert len(export.warnings) == 2


def test_model_without_provider_and_empty_key_are_accepted() -> None:
    for key, model in (("gpt-4", "gpt-4"), ('"m|local"', "local:m"), ('""', None)):
        export = read(f"---\nmodelKey: {key}\n---\n**user**: one\n")
        assert first_asked(export).model == model


def test_first_event_of_imported_chat_is_title() -> None:
    assert read("**user**: one\n").records[0].kind is EventKind.RENAME


def test_import_after_an_erasure_gets_another_id_and_repeats_safely() -> None:
    backend = make_backend(None)
    text = FRONT + TALK
    first = parse_archive(text, sources=None)
    import_log(backend, first)
    for _ in range(2):
        conversations = ConversationRepository(backend.store, backend.clock)
        (listed,) = conversations.list_conversations()
        conversations.erase(listed.conversation)
        again = parse_archive(text, sources=None, is_erased=conversations.is_erased)
        assert import_log(backend, again) == "new"
        assert again.conversation_key != listed.conversation
        assert import_log(backend, parse_archive(text, sources=None, is_erased=conversations.is_erased)) == "same"


def test_shortened_text_is_used_only_without_full_one(vault: Path) -> None:
    block = '<prior_context source="docs/tea.md" type="note">\nHot ...\n</prior_context>'
    both = read(one("Notes: docs/tea.md", f"{block}\none"), vault)
    assert (attached(both), *both.contents.values()) == ([["docs/tea.md"]], b"Hot #drink.")
    alone = read(one("Notes: docs/gone.md", f"{block}\none"), vault)
    assert (attached(alone), *alone.contents.values()) == ([["docs/tea.md"]], b"Hot ...")
