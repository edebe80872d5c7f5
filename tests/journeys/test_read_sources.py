"""A page, a PDF and office files attached by name: they are read, stored, and sent the same later."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.documents import make_docx, make_pdf, make_xlsx, paragraph
from tests.journeys.running import replay, spawn
from tests.sites import Site, redirect, reply, site

import lamella
from lamella import Office, Pdf, Url, WebTab, YouTube
from lamella.errors import AddressNotAllowedError, SourceUnreachableError, SourceUnreadableError
from lamella.providers.scripted import ScriptedProvider

MODEL = "anthropic:claude-opus-5-5"
STORY = "<title>Tides</title>" + "<p>The harbour was closed for nine days, and no ship came in at all.</p>" * 3


class Bay:
    """A site with one page that can change, a vault with a paper, and a store."""

    def __init__(self, folder: Path, here: Site) -> None:
        self.vault = folder / "vault"
        self.vault.mkdir()
        (self.vault / "tides.pdf").write_bytes(make_pdf(["High at noon."], ["Low at six."]))
        (self.vault / "plan.docx").write_bytes(make_docx(paragraph("We build a pier.")))
        (self.vault / "costs.xlsx").write_bytes(make_xlsx({"Fees": [["berth", "fee"], [41, 7.5]]}))
        (self.vault / "broken.pdf").write_bytes(b"%PDF-1.4 no")
        self.store = f"sqlite:///{folder}/chats.db"
        self.site = here


@pytest.fixture
def page() -> list[Sequence[bytes]]:
    """What the page answers, last one counts."""
    return [reply(STORY.encode())]


@pytest.fixture
def bay(tmp_path: Path, page: list[Sequence[bytes]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Bay]:
    monkeypatch.setenv("LAMELLA_PRIVATE_ADDRESSES", "127.0.0.1")
    monkeypatch.setenv("LAMELLA_CONVERSIONS", str(tmp_path / "kept"))

    def answer(path: str, _headers: Mapping[str, str]) -> Sequence[bytes]:
        return redirect("http://10.0.0.1/") if path == "/inside" else page[-1]

    with site(answer) as here:
        yield Bay(tmp_path, here)


def test_attachments_by_name_are_sent_as_text_and_reload_same(bay: Bay) -> None:
    url = f"{bay.site.url}/tides"

    async def sit(answer: str, question: str, attach: Sequence[Pdf | Office | Url]) -> list[str]:
        provider = ScriptedProvider(answer)
        async with lamella.open(bay.store, vault=bay.vault, model=MODEL, provider=provider) as engine:
            conversation = await engine.conversation("bay", layout="in_place")
            async for _ in conversation.send(question, attach=attach):
                pass
        return [message.text for message in provider.requests[0].messages]

    attach: list[Pdf | Office | Url] = [
        Pdf(path="tides.pdf"),
        Office(path="plan.docx"),
        Office(path="costs.xlsx"),
        Url(url=url),
    ]
    first = asyncio.run(sit("Nine days.", "What was closed?", attach))
    assert "## Page 2\n\nLow at six." in first[-1]
    assert "We build a pier." in first[-1]
    assert "| 41 | 7.5 |" in first[-1]
    assert f"<title>Tides</title>\n<url>{url}</url>" in first[-1]
    second = asyncio.run(sit("Yes.", "Are you sure?", [Url(url=url), Pdf(path="tides.pdf")]))
    assert second[: len(first)] == first
    assert "The harbour was closed" not in second[-1]
    assert bay.site.paths == ["/tides"]


def test_page_is_refetched_on_request_and_kept_on_failure(bay: Bay, page: list[Sequence[bytes]]) -> None:
    url = f"{bay.site.url}/tides"
    with lamella.open(bay.store, vault=bay.vault) as engine:
        conversation = engine.chat("bay")
        conversation.ask("One", attach=[Url(url=url)])
        conversation.reply("Yes.")
        page.append(reply(STORY.replace("nine", "ten").encode()))
        told = conversation.ask("Two", attach=[Url(url=url)])
        conversation.reply("Yes.")
        assert "ten days" not in told.messages[-1].text
        told = conversation.ask("Three", attach=[Url(url=url, fresh=True)])
        conversation.reply("Yes.")
        assert "ten days" in told.messages[-1].text
        page.append(reply(b"gone", status="503 Later"))
        told = conversation.ask("Four", attach=[Url(url=url, fresh=True)])
        assert any("stays as it was read on" in warning and "503" in warning for warning in told.envelope.warnings)
        assert "ten days" in "".join(message.text for message in told.messages)


def test_changed_paper_is_updated_and_broken_one_is_kept(bay: Bay) -> None:
    with lamella.open(bay.store, vault=bay.vault) as engine:
        conversation = engine.chat("bay", attachments="sticky")
        conversation.ask("One", attach=[Pdf(path="tides.pdf")])
        conversation.reply("Yes.")
        (bay.vault / "tides.pdf").write_bytes(make_pdf(["High at one."]))
        told = conversation.ask("Two")
        conversation.reply("Yes.")
        assert "High at one." in told.messages[-1].text
        assert any("tides.pdf changed since" in warning for warning in told.envelope.warnings)
        (bay.vault / "tides.pdf").write_bytes(b"%PDF-1.4 torn")
        told = conversation.ask("Three")
        assert any("stays as it was sent last" in warning for warning in told.envelope.warnings)
        assert "High at one." in "".join(message.text for message in told.messages)


def test_unreadable_source_gives_reason_and_chat_continues(bay: Bay) -> None:
    with lamella.open(bay.store, vault=bay.vault) as engine:
        conversation = engine.chat("bay")
        with pytest.raises(SourceUnreadableError, match=r"broken\.pdf is a broken PDF"):
            conversation.ask("One", attach=[Pdf(path="broken.pdf")])
        with pytest.raises(AddressNotAllowedError, match=r"10\.0\.0\.1"):
            conversation.ask("One", attach=[WebTab(url=f"{bay.site.url}/inside")])
        with pytest.raises(SourceUnreadableError, match="shows no video"):
            conversation.ask("One", attach=[YouTube(url=bay.site.url)])
        with pytest.raises(SourceUnreachableError):
            conversation.ask("One", attach=[Url(url="http://127.0.0.1:9/")])
        assert conversation.ask("One", attach=[Pdf(path="tides.pdf")]).messages[-1].text.endswith("One")


def test_transcript_names_pages_and_papers_without_their_text(bay: Bay, tmp_path: Path) -> None:
    url = f"{bay.site.url}/tides"
    turns = [
        {"user": "One", "attach": [{"kind": "url", "url": url}, {"kind": "pdf", "path": "tides.pdf"}], "reply": "Yes."},
        {"user": "Two", "attach": [{"kind": "web_tab", "url": f"{url}?tab"}]},
    ]
    ran = replay(tmp_path, {"lamella": 1, "vault": "vault", "turns": turns})
    assert ran.exit == 0
    again = replay(tmp_path, {"lamella": 1, "vault": "vault", "turns": turns})
    assert again.out == ran.out
    assert "The harbour was closed" in ran.out
    assert bay.site.paths == ["/tides", "/tides?tab"]


def test_command_attaches_a_page_and_a_paper_by_name(bay: Bay, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{bay.site.url}/tides"
    monkeypatch.chdir(bay.vault)
    ran = spawn("ask", f"What is at @{url}, please?", "--attach", "tides.pdf", "--preview", "--json", "--model", MODEL)
    assert ran.exit == 0, ran.err
    assert f"attached: {url}" in ran.err
    body = json.loads(ran.out)
    assert [segment["kind"] for segment in body["envelope"]["layers"][2]["segments"]] == ["pdf", "url"]
    assert spawn("ask", "Anew", "--attach", url, "--fresh", "--preview", "--json", "--model", MODEL).exit == 0
    assert bay.site.paths == ["/tides"] * 2


def test_project_may_not_open_the_private_network(bay: Bay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMELLA_PRIVATE_ADDRESSES")
    monkeypatch.delenv("LAMELLA_CONVERSIONS")
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for setting in ('private_addresses = "127.0.0.1"', f'conversions = "{tmp_path}/theirs"'):
        (project / "lamella.toml").write_text(setting + "\n", encoding="utf-8")
        ran = spawn("ask", "Hello", "--attach", bay.site.url, "--preview", "--model", MODEL)
        assert ran.exit == 2
        assert "which only your own settings may" in ran.err
    assert spawn("ask", "Hello", "--preview", "--model", MODEL).exit == 0
    assert bay.site.asked == []
    assert not (tmp_path / "theirs").exists()
