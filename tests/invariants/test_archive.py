"""The archive: any text, any conversation, any edit by hand and any damage, written as markdown and read back."""

import re
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.moves import Kept, stored_conversation_plans
from tests.invariants.reopened_prompts import NAME, Lasting, make_backend
from tests.invariants.test_reopened_conversations import check_same

from lamella.archive.markdown import parse_archive, render_archive
from lamella.archive.markdown.archive import MAX_FILE_NAME_BYTES, archive_file_name
from lamella.archive.markdown.page import (
    VisibleMessage,
    escape_text,
    is_context_line,
    pair_messages,
    parse_context_line,
    parse_page,
    render_context_line,
    render_page,
    typed_text,
    unescape_text,
)
from lamella.archive.markdown.payload import ArtifactRef, render_front_matter, split_front_matter
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository, ImportOutcome
from lamella.core.artifacts.model import ArtifactId, ArtifactKind
from lamella.core.log.events.artifact import StoredArtifact, StoredSource
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import MessageAuthor
from lamella.errors import BadInputError
from lamella.ports import ConversationExport, SourceReaders
from lamella.sources.open_sources import make_source_opener
from lamella.stores.memory import InMemoryStore
from lamella.wiring import open_backend

archived = settings(settings.get_profile("invariants"))
written = settings(archived, max_examples=10 * archived.max_examples)

# Every mark of the format, everything that editors and systems change, and what makes their neighbours ambiguous.
PIECES = (
    *("**user**: ", "**ai**: ", "**ai**:", "[Context: Notes: a.md]", "[Context: ", "[Timestamp: 2026/01/01 00:00:00]"),
    *("[Timestamp: x]", "]", "---", "...", "-->", "--!>", "<!-- lamella-context: {}", "<!--", "lamella: 1"),
    *("\n", "\n\n", "\r", "\r\n", "\t", " ", "  ", "\\", "\\\\", "&", "&#13;", "&amp;#13;", "&amp;", "#", ";", "13"),
    *("\x00", "\x0b", "\x0c", "\x1c", "\x7f", "\x85", "\u2028", "\u2029", "\ufeff", "\ufffe", "\xa0"),
    *('"', "'", ", ", " | ", "Notes: ", "a.md", "é", "e\u0301", "漢", "😀", "👩‍👩‍👧", "\u202e", "word"),
)
# Surrogates have no form in UTF-8; nothing that holds one is ever stored.
TEXTS = st.lists(
    st.sampled_from(PIECES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=12
).map("".join)


@written
@given(TEXTS)
def test_any_text_survives_escaping_and_never_reads_as_structure(text: str) -> None:
    escaped = escape_text(text)
    assert unescape_text(escaped) == text
    assert not re.search(r"^(?:\*\*(?:user|ai)\*\*:|\[Context:|\[Timestamp:|<!-- lamella)", f"x{escaped}", re.MULTILINE)
    assert not re.search("[\r\x00\x0b\x0c\x1c\x85\u2028\u2029]", escaped)


@written
@given(st.lists(st.tuples(st.sampled_from(MessageAuthor), TEXTS), max_size=5))
def test_messages_are_parsed_from_archive_page(said: list[tuple[MessageAuthor, str]]) -> None:
    messages = tuple(VisibleMessage(role=role, text=text, stamp="2026/01/01 00:00:00") for role, text in said)
    page = parse_page(render_page(messages))
    assert page.messages == messages
    assert page.preface == ""


@written
@given(TEXTS, TEXTS)
def test_any_title_and_id_are_read_back_from_the_front_matter(title: str, conversation: str) -> None:
    front, body = split_front_matter(
        render_front_matter(conversation_key=conversation, title=title, created="now") + "body"
    )
    assert (front.fields["title"], front.fields["conversation"]) == (title, conversation)
    assert body == "body"


@written
@given(st.lists(TEXTS.filter(bool), min_size=1, max_size=4, unique=True))
def test_any_names_are_read_back_from_the_context_line(names: list[str]) -> None:
    line = render_context_line([_ref(name) for name in names])
    assert is_context_line(line)
    assert "\n" not in line
    assert parse_context_line(line) == {"Notes": names}


def _ref(path: str) -> ArtifactRef:
    return ArtifactRef(
        stored=StoredArtifact(
            id=ArtifactId(path), kind=ArtifactKind.NOTE, title="", hash="", source=StoredSource(path=path)
        )
    )


@written
@given(TEXTS | st.text(min_size=30), st.integers(1, 10_000))
def test_any_title_gives_valid_file_name(title: str, number: int) -> None:
    try:
        title.encode()
    except UnicodeEncodeError:
        title = ""
    name = archive_file_name(title, number)
    assert len(name.encode()) <= MAX_FILE_NAME_BYTES
    assert not re.search(r'[<>:"/\\|?*\x00-\x1f]', name)
    assert re.fullmatch(r"[^. ](?:.*[^. ])?\.md", name)
    assert not re.match(r"(?:con|prn|aux|nul|com\d|lpt\d)\s*\.", name, re.IGNORECASE)


def _played(kept: Kept, folder: Path) -> tuple[Lasting, InMemoryStore]:
    """A conversation up to the move before its last, and the store it is in."""
    store = InMemoryStore()
    played = Lasting(kept, folder, lambda: store)
    for move in kept.moves[:-1]:
        played.move(move)
    return played, store


def _take_out(store: InMemoryStore) -> ConversationExport:
    return ConversationRepository(store, open_backend("memory:").clock).export_conversation(NAME)


@archived
@given(stored_conversation_plans())
def test_imported_conversation_continues_like_original(kept: Kept) -> None:
    with TemporaryDirectory() as folder:
        played, store = _played(kept, Path(folder))
        vault = Path(folder) / "vault" if kept.plan.vault else None
        sources = make_source_opener(vault)() if vault else None
        export = _take_out(store)
        read = parse_archive(render_archive(export, sources=sources or _nowhere(Path(folder))), sources=sources)
        assert read == export
        other, counting = make_backend(InMemoryStore(), vault)
        conversations = ConversationRepository(other.store, other.clock)
        assert conversations.import_conversation(read) is ImportOutcome.NEW
        assert list(conversations.verify()) == []
        before = counting.reads
        moved = Conversation.open(other, NAME, {})
        assert (counting.reads) == before
        check_same(played.stored.ask("And now?"), moved.ask("And now?"))


def _nowhere(folder: Path) -> SourceReaders:
    """A vault without any note: whatever was attached rides along."""
    (folder / "nowhere").mkdir(exist_ok=True)
    return make_source_opener(folder / "nowhere")()


@archived
@given(stored_conversation_plans(turns=4))
def test_import_without_vault_reports_missing_notes(kept: Kept) -> None:
    with TemporaryDirectory() as folder:
        _, store = _played(kept, Path(folder))
        export = _take_out(store)
        read = parse_archive(render_archive(export), sources=None)
        missing = set(export.contents) - set(read.contents)
        assert bool(missing) == bool(read.warnings)
        assert all("is left out: no vault was given to read it from." in warning for warning in read.warnings)
        conversations = ConversationRepository(InMemoryStore(), open_backend("memory:").clock)
        assert conversations.import_conversation(read) is ImportOutcome.NEW
        assert list(conversations.verify()) == []
        if not missing:
            assert read == export


def _shown(chronicle: ConversationExport) -> list[str]:
    log = FoldedLog(conversation=chronicle.conversation_key)
    log.extend(chronicle.records)
    return [
        text
        for record in log.branch_records()
        for text in (typed_text(record.message), record.reply.text if record.reply else "")
    ]


@archived
@given(stored_conversation_plans(turns=4), st.lists(TEXTS, min_size=3, max_size=3), st.integers(0, 2**32))
def test_manual_edits_of_archive_are_imported(kept: Kept, texts: list[str], seed: int) -> None:
    random = Random(seed)
    with TemporaryDirectory() as folder:
        _, store = _played(kept, Path(folder))
        export = _take_out(store)
        text = render_archive(export, sources=_nowhere(Path(folder)))
        front, messages, comment = _parts(text)
        for added in texts:
            place = random.randrange(len(messages) + 1)
            role = random.choice((MessageAuthor.USER, MessageAuthor.REPLY))
            shown = VisibleMessage(role=role, text=added, stamp="2026/06/01 00:00:00")
            messages[place : place + random.choice((0, 1, 1, 2))] = [shown] if random.randrange(4) else []
        read = parse_archive(front + render_page(messages) + comment, sources=None)
        assert read.records[: len(export.records)] == export.records
        pairs, _ = pair_messages(messages)
        wanted = [text for pair in pairs for text in (pair.user.text, pair.reply.text if pair.reply else "")]
        assert [_trimmed(text) for text in _shown(read)] == [_trimmed(text) for text in wanted]
        conversations = ConversationRepository(store, open_backend("memory:").clock)
        assert conversations.import_conversation(read) in (ImportOutcome.EXTENDED, ImportOutcome.SAME)
        assert list(conversations.verify()) == []
        again = render_archive(_take_out(store), sources=_nowhere(Path(folder)))
        assert parse_archive(again, sources=None) == _take_out(store)


def _parts(text: str) -> tuple[str, list[VisibleMessage], str]:
    _, body = split_front_matter(text)
    at = re.search(r"^<!-- lamella-context", body, re.MULTILINE)
    assert at is not None
    return text[: -len(body)], list(parse_page(body[: at.start()]).messages), body[at.start() :]


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


@archived
@given(stored_conversation_plans(turns=2), st.integers(0, 2**32))
def test_damaged_archive_is_refused_or_read_and_never_crashes(kept: Kept, seed: int) -> None:
    random = Random(seed)
    with TemporaryDirectory() as folder:
        _, store = _played(kept, Path(folder))
        text = render_archive(_take_out(store))
        for _ in range(20):
            _try(_damaged(text, random))


@written
@given(TEXTS, TEXTS, TEXTS)
def test_any_file_at_all_is_refused_or_read_and_never_crashes(front: str, body: str, comment: str) -> None:
    _try(f"---\n{front}\n---\n{body}\n<!-- lamella-context: {comment} -->")
    _try(f"---\nlamella: 1\n{front}\n---\n{body}\n<!-- lamella-context: {comment} -->")
    _try(f"**user**: {body}\n<note_context>\n<path>{comment}</path>\n<content>{front}</content>\n</note_context>")


def _try(text: str) -> None:
    """An error of ours, or a conversation that a store imports whole."""
    try:
        read = parse_archive(text, sources=None)
    except BadInputError:
        return
    conversations = ConversationRepository(InMemoryStore(), open_backend("memory:").clock)
    assert not read.records or conversations.import_conversation(read) is ImportOutcome.NEW
    assert list(conversations.verify()) == []


def _damaged(text: str, random: Random) -> str:
    start = random.randrange(len(text))
    end = min(len(text), start + random.choice((0, 1, 10, 1_000)))
    return text[:start] + random.choice((*PIECES, '"', "{", "}", "[", ",", "0", "null", "")) + text[end:]
