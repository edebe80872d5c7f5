"""Sources: a number in a reply opens the passage that it meant, wherever the conversation goes."""

from pathlib import Path

import lamella
from lamella import Conversation, Engine, Note
from lamella.attach import NotePassage
from lamella.conversation.note_index import Citation, list_citation_hashes, read_citations
from lamella.conversation.turn import ModelAnswer
from lamella.core.log.turn import StoredCitation
from lamella.core.messages import ModelReply, StopReason

PASSAGE = NotePassage(path="costs.md", passage_position="May", text="Seeds: 12.")
GARDEN = Note(path="garden.md", text="# Beds\n\nBeans in the north.\n")
CITED = (
    StoredCitation(id="costs.md#passage:May", place="May"),
    StoredCitation(id="garden.md", place="Beds", span=(8, 13)),
)
FOUND = (
    Citation(number=1, id="costs.md#passage:May", title="costs", path="costs.md", place="May", text="Seeds: 12."),
    Citation(number=2, id="garden.md", title="garden", path="garden.md", place="Beds", text="Beans"),
)


def answer(chat: Conversation, text: str = "Beans [^2] for 12 [^1].") -> Conversation:
    chat.ask("What, and for how much?", attach=[PASSAGE, GARDEN])
    chat.reply(ModelAnswer(reply=ModelReply(text=text, stop=StopReason.END), citations=CITED))
    return chat


def open_engine(folder: Path, name: str = "chats.db") -> Engine:
    return lamella.open(f"sqlite:///{folder / name}")


def test_citation_opens_its_passage_after_reload(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        assert answer(engine.chat("garden")).sources() == FOUND
    with open_engine(tmp_path) as engine:
        conversation = engine.chat("garden")
        assert conversation.sources() == FOUND
        assert conversation.turns()[-1].sources == CITED


def test_citations_are_found_by_reply_id(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        conversation = answer(engine.chat("garden"))
        cited = conversation.head
        conversation.ask("Thanks.")
        conversation.reply("Gladly.")
        assert (conversation.sources(), conversation.sources(cited)) == ((), FOUND)


def test_fork_and_an_archive_have_the_sources_as_well(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine, open_engine(tmp_path, "other.db") as other:
        conversation = answer(engine.chat("garden"))
        assert engine.fork(conversation, conversation.head, "copy").sources() == FOUND
        file = engine.export_archive(conversation, tmp_path)
        brought, _, warnings = other.import_archive(file)
        assert (brought.sources(), list(warnings)) == (FOUND, [])


def test_regenerated_equal_answer_keeps_sources(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        conversation = answer(engine.chat("garden"))
        conversation.regenerate()
        conversation.reply("Beans [^2] for 12 [^1].")
        assert conversation.sources() == FOUND


def test_erased_source_keeps_only_its_place(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        conversation = answer(engine.chat("garden"))
        engine.erase_artifact(conversation, "garden.md")
        assert [source.text for source in engine.chat("garden").sources()] == ["Seeds: 12.", None]


def test_source_outside_question_has_no_text(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        conversation = engine.chat("garden")
        conversation.ask("What?")
        conversation.reply(ModelAnswer(reply=ModelReply(text="[^1]", stop=StopReason.END), citations=CITED[:1]))
        (record,) = conversation.turns()
        assert list_citation_hashes(record) == []
        assert read_citations(record, {}) == (Citation(number=1, id="costs.md#passage:May", title="", place="May"),)
