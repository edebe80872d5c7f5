"""Sources: a number in a reply opens the passage that it meant, wherever the conversation goes."""

from pathlib import Path

import lamella
from lamella import Chat, Engine, Note
from lamella.attach import NotePassage
from lamella.core.log.events.reply import CitedSource
from lamella.core.messages.delta import Reply, StopReason
from lamella.engine.dialogue.answer import Answer
from lamella.engine.sources import ReplySource, list_source_hashes, read_sources

PASSAGE = NotePassage(path="costs.md", place="May", text="Seeds: 12.")
GARDEN = Note(path="garden.md", text="# Beds\n\nBeans in the north.\n")
CITED = (
    CitedSource(id="costs.md#passage:May", place="May"),
    CitedSource(id="garden.md", place="Beds", span=(8, 13)),
)
FOUND = (
    ReplySource(number=1, id="costs.md#passage:May", title="costs", path="costs.md", place="May", text="Seeds: 12."),
    ReplySource(number=2, id="garden.md", title="garden", path="garden.md", place="Beds", text="Beans"),
)


def answer(chat: Chat, text: str = "Beans [^2] for 12 [^1].") -> Chat:
    chat.ask("What, and for how much?", attach=[PASSAGE, GARDEN])
    chat._stored.reply(Answer(reply=Reply(text=text, stop=StopReason.END), sources=CITED))
    return chat


def open_engine(folder: Path, name: str = "chats.db") -> Engine:
    return lamella.open(f"sqlite:///{folder / name}")


def test_a_number_opens_its_passage_after_a_reload(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        assert answer(engine.chat("garden")).sources() == FOUND
    with open_engine(tmp_path) as engine:
        chat = engine.chat("garden")
        assert chat.sources() == FOUND
        assert chat.turns()[-1].sources == CITED


def test_a_reply_is_named_where_another_one_came_after_it(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        chat = answer(engine.chat("garden"))
        cited = chat.head
        chat.ask("Thanks.")
        chat.reply("Gladly.")
        assert (chat.sources(), chat.sources(cited)) == ((), FOUND)


def test_a_fork_and_an_archive_have_the_sources_as_well(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine, open_engine(tmp_path, "other.db") as other:
        chat = answer(engine.chat("garden"))
        assert engine.fork(chat, chat.head, "copy").sources() == FOUND
        file = engine.export_archive(chat, tmp_path)
        brought, _, warnings = other.import_archive(file)
        assert (brought.sources(), list(warnings)) == (FOUND, [])


def test_the_same_answer_given_once_more_keeps_its_sources(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        chat = answer(engine.chat("garden"))
        chat.regenerate()
        chat.reply("Beans [^2] for 12 [^1].")
        assert chat.sources() == FOUND


def test_of_what_was_erased_only_the_place_is_left(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        chat = answer(engine.chat("garden"))
        engine.erase_artifact(chat, "garden.md")
        assert [source.text for source in engine.chat("garden").sources()] == ["Seeds: 12.", None]


def test_a_source_that_did_not_come_with_the_question_has_no_text(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        chat = engine.chat("garden")
        chat.ask("What?")
        chat._stored.reply(Answer(reply=Reply(text="[^1]", stop=StopReason.END), sources=CITED[:1]))
        (told,) = chat.turns()
        assert list_source_hashes(told) == []
        assert read_sources(told, {}) == (ReplySource(number=1, id="costs.md#passage:May", title="", place="May"),)
