"""A note, a paper and a page, talked about with the model that ships: attached, changed, reloaded, forked, detached."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.documents import make_pdf
from tests.sites import Site, reply, site
from tests.unit.rendered import attached

import lamella
from lamella import Conversation, Engine, Note, Pdf, Turn, Url
from lamella.attach import Attachment

BEDS = "# Garden\n" + "".join(f"Bed {bed} has {bed * 3} tomato plants.\n" for bed in range(12))
NEW = "Bed 99 is new.\n"
TIDES = "<title>Tides</title><p>The harbour was closed for nine days.</p><p>No ship came in, and none went out.</p>"
# What a source says, by what it is attached as. Each is in a prompt once.
SAYS = {"garden.md": "Bed 3 has 9 tomato plants.", "tides.pdf": "High water at noon.", "/tides": "closed for nine days"}


class Shed:
    """A vault with a note and a paper, a site with a page, and a store."""

    def __init__(self, folder: Path, here: Site) -> None:
        self.site = here
        self.vault = folder / "vault"
        self.vault.mkdir()
        self.note = self.vault / "garden.md"
        self.note.write_text(BEDS, encoding="utf-8")
        (self.vault / "tides.pdf").write_bytes(make_pdf(["High water at noon."], ["Low water at six."]))
        self._store = f"sqlite:///{folder}/chats.db"

    def attach(self) -> list[Attachment]:
        return [Note(path="garden.md"), Pdf(path="tides.pdf"), Url(url=f"{self.site.url}/tides")]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Engine]:
        """The engine with the model that ships, as a new process would have it."""
        async with lamella.open(self._store, vault=self.vault, model="local") as engine:
            yield engine


@pytest.fixture
def shed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shed]:
    monkeypatch.setenv("LAMELLA_PRIVATE_ADDRESSES", "127.0.0.1")
    monkeypatch.setenv("LAMELLA_CONVERSIONS", str(tmp_path / "kept"))
    with site(lambda _path, _headers: reply(TIDES.encode())) as here:
        yield Shed(tmp_path, here)


async def sit(engine: Engine, name: str = "garden") -> Conversation:
    return await engine.conversation(name, layout="in_place", attachments="sticky")


async def ask(
    chat: Conversation, question: str, *, attach: Sequence[Attachment] = (), detach: Sequence[str] = ()
) -> Turn:
    """The turn as it was sent, once a few words of the answer are there."""
    async for _ in chat.send(question, attach=attach, detach=detach, max_tokens=4):
        pass
    return list(chat.replay())[-1]


def texts(turn: Turn) -> list[str]:
    return [message.text for message in turn.messages]


def count(turn: Turn) -> dict[str, int]:
    """How often each source is in what is sent."""
    everything = "\n".join(texts(turn))
    return {name: everything.count(says) for name, says in SAYS.items()}


def extends(later: Turn, earlier: Turn) -> bool:
    """Whether nothing that was sent before has moved."""
    before = texts(earlier)
    return texts(later)[: len(before)] == before and str(later.prefix_change.prefix_change) == "none"


def test_edited_note_is_update_and_moves_nothing_else(shed: Shed) -> None:
    async def journey() -> None:
        async with shed.open() as engine:
            conversation = await sit(engine)
            first = await ask(conversation, "How many beds are there?", attach=shed.attach())
            assert count(first) == dict.fromkeys(SAYS, 1)
            shed.note.write_text(BEDS + NEW, encoding="utf-8")
            second = await ask(conversation, "And now?")
        assert extends(second, first)
        assert attached(second) == [("garden.md", "update")]
        assert NEW in texts(second)[-1]
        assert count(second) == dict.fromkeys(SAYS, 1)
        assert any("garden.md changed" in warning for warning in second.envelope.warnings)
        async with shed.open() as engine:
            conversation = await sit(engine)
            third = await ask(conversation, "Are you sure?")
            assert extends(third, second)
            assert attached(third) == []
            fork = engine.fork(conversation, conversation.turns()[0].message.id, "side")
            aside = await ask(await sit(engine, fork.name), "And here?")
            assert texts(aside)[: len(texts(first))] == texts(first)
            assert attached(aside) == [("garden.md", "update")]
            fourth = await ask(conversation, "Thank you.", detach=["garden.md"])
            assert extends(fourth, third)
            shed.note.write_text("Nothing grows here.\n", encoding="utf-8")
            fifth = conversation.ask("And the tides?")
            conversation.reply("At noon.")
            assert extends(fifth, fourth)
            assert attached(fifth) == []
            assert "Nothing grows here." not in "\n".join(texts(fifth))
            calls = [call for told in conversation.ledger()[:4] for call in told]
            left = conversation.ask("And without the paper?", drop=["tides.pdf"])
            assert count(left) == {**dict.fromkeys(SAYS, 1), "tides.pdf": 0}
        assert [call.predicted and call.predicted.read for call in calls] == [call.usage.read for call in calls]
        assert all((call.usage.read or 0) > 0.6 * (call.usage.prompt_tokens or 0) for call in (calls[1], *calls[3:]))
        assert shed.site.paths == ["/tides"]

    asyncio.run(journey())
