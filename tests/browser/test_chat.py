"""The chat: questions, streamed answers, stopping, editing, drafts, and two tabs."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import StartServer, Tabs
from tests.server.running import PausingProvider, RunningServer, running
from tests.waiting import wait_until

from lamella.core.messages import Delta, ModelRequest, Role, TextDelta, ToolCall
from lamella.server.state import OPERATOR
from lamella.testing import ScriptedProvider, ScriptedReply

ANSWER = """Sow **beans** in May.

| plant | month |
|---|---|
| beans | May |

```python
print("beans")
```

- [x] water them"""


class EchoProvider(ScriptedProvider):
    """Answers every question, in small parts, with a text that names it."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        asked = str(request.messages[-1].text).strip().splitlines()[-1]
        self._replies.append(ScriptedReply(text=ANSWER if "beans" in asked else f"You asked: {asked}", chunk_size=7))
        async for delta in super().stream(request):
            yield delta


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", EchoProvider()) as one:
        yield one


def ask(page: Page, text: str) -> None:
    """Type a question and send it."""
    field = page.get_by_label("Message", exact=True)
    field.fill(text)
    field.press("Enter")


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_question_is_answered_as_markdown(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    page = tabs.open(f"{server.url}/#/c/{server.begin(f'beans-{phone}')}", phone=phone)
    ask(page, "When to sow beans?")
    answer = page.locator("article").last
    expect(answer.locator("strong")).to_have_text("beans")
    expect(answer.get_by_role("cell", name="May")).to_be_visible()
    expect(answer.locator(".code code")).to_have_text('print("beans")')
    expect(answer.get_by_text("☑ water them")).to_be_visible()
    answer.locator(".code").get_by_role("button", name="Copy").click()
    expect(answer.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == 'print("beans")'
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    expect(page.locator(".estimate")).to_contain_text("tokens")
    tabs.check_width(page)


def test_question_is_shown_before_the_model_answers(start: StartServer, tabs: Tabs) -> None:
    provider = PausingProvider("The first part. " * 40)
    server = start(provider)
    page = tabs.open(f"{server.url}/#/c/{server.begin('pause')}")
    ask(page, "Is it shown?")
    expect(page.locator(".bubble")).to_have_text("Is it shown?")
    provider.let_go.set()
    expect(page.locator("article")).to_contain_text("The first part.")


class SteppedProvider(ScriptedProvider):
    """Waits before each block of its answer until the test lets it go on."""

    def __init__(self, *blocks: str) -> None:
        super().__init__("".join(blocks))
        self.blocks = blocks
        self._allowed = 1
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def allow(self, count: int) -> None:
        """Let the answer go on until it has this many blocks."""
        self._allowed = count
        for loop, changed in self._waiting:
            loop.call_soon_threadsafe(changed.set)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        end = [delta async for delta in super().stream(request)][-1]
        changed = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), changed))
        for number, block in enumerate(self.blocks):
            while self._allowed <= number:
                await changed.wait()
                changed.clear()
            yield TextDelta(text=block)
        self._waiting.clear()
        yield end


def test_finished_blocks_keep_their_nodes_while_the_answer_grows(start: StartServer, tabs: Tabs) -> None:
    provider = SteppedProvider(*[f"Paragraph {number}.\n\n" for number in range(12)])
    server = start(provider)
    page = tabs.open(f"{server.url}/#/c/{server.begin('growing')}")
    ask(page, "Tell it in parts")
    provider.allow(6)
    expect(page.get_by_text("Paragraph 5.")).to_be_visible()
    page.get_by_text("Paragraph 1.").evaluate("node => { node.isTheSame = true }")
    provider.allow(12)
    expect(page.get_by_text("Paragraph 11.")).to_be_visible()
    expect(page.get_by_role("button", name="Copy the answer")).to_be_visible()
    assert page.get_by_text("Paragraph 1.").evaluate("node => node.isTheSame") is True


def test_scrolling_up_in_an_answer_is_not_fought(start: StartServer, tabs: Tabs) -> None:
    provider = SteppedProvider(*[f"Line {number} of a long answer.\n\n" for number in range(80)])
    server = start(provider)
    page = tabs.open(f"{server.url}/#/c/{server.begin('scrolled')}")
    ask(page, "Something long")
    provider.allow(60)
    expect(page.get_by_text("Line 59 of")).to_be_in_viewport()
    view = page.get_by_role("region", name="Conversation")
    view.hover()
    page.mouse.wheel(0, -600)
    expect(page.get_by_role("button", name="The answer goes on")).to_be_visible()
    expect(page.get_by_text("Line 59 of")).not_to_be_in_viewport()
    before = view.evaluate("node => node.scrollTop")
    provider.allow(80)
    expect(page.get_by_text("Line 79 of")).to_be_attached()
    expect(page.get_by_role("button", name="To the end")).to_be_visible()
    assert view.evaluate("node => node.scrollTop") == before
    page.get_by_role("button", name="To the end").click()
    expect(page.get_by_text("Line 79 of")).to_be_in_viewport()


def test_reload_in_mid_answer_loses_nothing(start: StartServer, tabs: Tabs) -> None:
    provider = SteppedProvider("One. ", "Two. ", "Three. ", "Four.")
    server = start(provider)
    page = tabs.open(f"{server.url}/#/c/{server.begin('reloaded')}")
    ask(page, "Count")
    provider.allow(2)
    expect(page.locator(".answer")).to_contain_text("One. Two.")
    page.reload()
    expect(page.locator(".answer")).to_contain_text("One. Two.")
    expect(page.locator(".bubble")).to_have_text("Count")
    provider.allow(4)
    expect(page.locator(".answer .markdown")).to_have_text("One. Two. Three. Four.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_answer_goes_on_while_another_chat_is_open(start: StartServer, tabs: Tabs) -> None:
    provider = SteppedProvider("One. ", "Two. ", "Three.")
    server = start(provider)
    key, other = server.begin("first"), server.begin("second")
    page = tabs.open(f"{server.url}/#/c/{key}")
    ask(page, "Count")
    expect(page.locator(".answer")).to_contain_text("One.")
    page.get_by_role("link", name="second").click()
    expect(page).to_have_url(re.compile(other))
    provider.allow(3)
    # Its name is its question by now.
    page.locator(f'a[href="#/c/{key}"]').click()
    expect(page.locator(".answer .markdown")).to_have_text("One. Two. Three.")


def test_escape_stops_the_answer_and_its_reason_is_shown(start: StartServer, tabs: Tabs) -> None:
    provider = SteppedProvider("One. ", "Two. ", "Three.")
    server = start(provider)
    page = tabs.open(f"{server.url}/#/c/{server.begin('stopped')}")
    ask(page, "Count")
    expect(page.locator(".answer")).to_contain_text("One.")
    page.get_by_label("Message", exact=True).press("Escape")
    expect(page.get_by_text("Stopped by you.")).to_be_visible()
    expect(page.locator(".answer .markdown")).to_have_text("One.")


def test_edited_question_replaces_the_turn(server: RunningServer, tabs: Tabs) -> None:
    page = tabs.open(f"{server.url}/#/c/{server.begin('edited')}")
    ask(page, "First wording")
    expect(page.locator(".answer")).to_contain_text("You asked: First wording")
    page.locator(".question").hover()
    page.get_by_role("button", name="Edit the question").click()
    field = page.get_by_label("Edit the question")
    field.fill("Second wording")
    field.press("Enter")
    expect(page.locator(".answer")).to_contain_text("You asked: Second wording")
    expect(page.locator("article")).to_have_count(1)
    page.get_by_role("button", name="Answer again").click()
    expect(page.get_by_role("button", name="Copy the answer")).to_be_visible()
    expect(page.locator("article")).to_have_count(1)


def test_draft_survives_reload_and_other_chats(server: RunningServer, tabs: Tabs) -> None:
    key, other = server.begin("draft"), server.begin("other-draft")
    page = tabs.open(f"{server.url}/#/c/{key}")
    field = page.get_by_label("Message", exact=True)
    field.fill("half a thou")
    page.get_by_role("link", name="other-draft").click()
    expect(page).to_have_url(re.compile(other))
    expect(field).to_have_value("")
    page.get_by_role("link", name="draft", exact=False).filter(has_not_text="other").click()
    expect(field).to_have_value("half a thou")
    page.reload()
    expect(field).to_have_value("half a thou")


def test_failed_question_returns_to_the_field(start: StartServer, tabs: Tabs) -> None:
    tabs.expected.append("Failed to load resource")
    server = start(EchoProvider())
    page = tabs.open(f"{server.url}/#/c/{server.begin('failing')}")
    page.route("**/messages", lambda route: route.abort())
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    ask(page, "Does this get lost?")
    expect(page.get_by_text("The server does not answer.").first).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("Does this get lost?")


def test_two_tabs_show_the_same_conversation(server: RunningServer, tabs: Tabs) -> None:
    key = server.begin("shared")
    page = tabs.open(f"{server.url}/#/c/{key}")
    second = tabs.open_beside(page.context, f"{server.url}/#/c/{key}")
    expect(second.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    ask(page, "Seen by both?")
    expect(page.locator(".answer")).to_contain_text("You asked: Seen by both?")
    expect(second.locator(".answer")).to_contain_text("You asked: Seen by both?")


def test_search_finds_messages_of_all_chats(server: RunningServer, tabs: Tabs) -> None:
    key = server.begin("searched")
    server.ask(key, "Where do marigolds grow?")
    page = tabs.open(f"{server.url}/#/c/{server.begin('elsewhere')}")
    page.keyboard.press("Control+k")
    page.get_by_label("Search all chats").fill("marigolds")
    page.locator(".hit").first.click()
    expect(page.locator(".bubble")).to_have_text("Where do marigolds grow?")


def test_question_mark_shows_the_keys(server: RunningServer, tabs: Tabs) -> None:
    page = tabs.open(f"{server.url}/#/c/{server.begin('keys')}")
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_hidden()


def test_chat_is_renamed_and_deleted(server: RunningServer, tabs: Tabs) -> None:
    page = tabs.open(f"{server.url}/#/c/{server.begin('unnamed')}")
    changes: list[str] = []
    page.on("request", lambda one: changes.append(one.method) if one.method in ("PATCH", "DELETE") else None)
    page.get_by_role("button", name="Rename the chat").click()
    page.get_by_label("Title of the chat").fill("A better title")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="A better title")).to_be_visible()
    assert changes == ["PATCH"]
    page.get_by_role("button", name="Delete the chat").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("link", name="A better title")).to_have_count(0)


def test_server_that_went_away_is_noticed(start: StartServer, tabs: Tabs) -> None:
    tabs.expected.append("Failed to load resource")
    server = start(EchoProvider())
    page = tabs.open(f"{server.url}/#/c/{server.begin('away')}")
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    page.context.set_offline(offline=True)
    ask(page, "Anybody there?")
    expect(page.get_by_text("Drafts are kept")).to_be_visible()
    page.context.set_offline(offline=False)
    expect(page.get_by_text("Drafts are kept")).to_be_hidden()
    page.get_by_label("Message", exact=True).press("Enter")
    expect(page.locator(".answer")).to_contain_text("You asked: Anybody there?")


def test_state_of_the_stream_is_followed_from_elsewhere(start: StartServer, tabs: Tabs) -> None:
    provider = SteppedProvider("One. ", "Two.")
    server = start(provider)
    key = server.begin("elsewhere")
    with server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "Count"}) as answer:
        lines = answer.iter_lines()
        wait_until(lambda: next(lines).startswith("event: delta"), "the answer begins")
        page = tabs.open(f"{server.url}/#/c/{key}")
        expect(page.locator(".answer")).to_contain_text("One.")
        provider.allow(2)
        expect(page.locator(".answer .markdown")).to_have_text("One. Two.")


def test_changes_of_other_programs_appear_by_themselves(server: RunningServer, tabs: Tabs) -> None:
    key = server.begin("live")
    page = tabs.open(f"{server.url}/#/c/{key}")
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    server.ask(key, "Asked by a program?")
    expect(page.locator(".answer")).to_contain_text("You asked: Asked by a program?")
    server.client.patch(f"/v1/conversations/{key}", json={"title": "Named by a program"})
    expect(page.get_by_role("heading", name="Named by a program")).to_be_visible()
    expect(page.get_by_role("link", name="Named by a program")).to_be_visible()
    server.client.delete(f"/v1/conversations/{key}")
    expect(page.get_by_role("link", name="Named by a program")).to_have_count(0)
    expect(page).not_to_have_url(re.compile(key))


def test_several_chats_are_archived_taken_back_and_deleted(start: StartServer, tabs: Tabs) -> None:
    server = start(EchoProvider())
    for name in ("first", "second", "third"):
        server.begin(name)
    page = tabs.open(f"{server.url}/#/memory")
    page.get_by_role("button", name="Choose several").click()
    page.get_by_label("Choose first").check()
    page.get_by_label("Choose second").check()
    expect(page.get_by_text("2 chosen")).to_be_visible()
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.get_by_role("link", name="first")).to_have_count(0)
    expect(page.get_by_role("link", name="third")).to_be_visible()
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.get_by_role("link", name="first")).to_be_visible()
    page.get_by_role("button", name="Choose several").click()
    page.get_by_label("Choose first").check()
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_role("link", name="first")).to_have_count(0)
    page.get_by_role("button", name="Choose several").click()
    page.get_by_label("Choose second").check()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("The archive is empty.")).to_be_visible()
    page.get_by_role("button", name="Back to the chats").click()
    expect(page.get_by_role("link", name="first")).to_be_visible()
    assert len(server.client.get("/v1/conversations").json()["chats"]) == 2


def test_found_message_is_shown_at_its_turn(server: RunningServer, tabs: Tabs) -> None:
    key = server.begin("many")
    server.ask(key, "Where do cornflowers grow?")
    for number in range(12):
        server.ask(key, f"Question {number} about beans?")
    page = tabs.open(f"{server.url}/#/c/{key}")
    expect(page.locator(".bubble").get_by_text("Question 11 about beans?")).to_be_in_viewport()
    page.get_by_label("Search all chats").fill("cornflowers")
    hit = page.locator(".hit").first
    expect(hit).to_contain_text("turn 1")
    hit.click()
    expect(page.locator(".found .bubble")).to_have_text("Where do cornflowers grow?")
    expect(page.locator(".found .bubble")).to_be_in_viewport()


class TitlingProvider(EchoProvider):
    """Also writes titles."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        if "Write one title" in str(request.messages[-1].text):
            self._replies.append(ScriptedReply(text='"A garden plan"'))
            deltas = ScriptedProvider.stream(self, request)
        else:
            deltas = super().stream(request)
        async for delta in deltas:
            yield delta


def test_model_writes_the_title(start: StartServer, tabs: Tabs) -> None:
    server = start(TitlingProvider())
    key = server.begin("untitled")
    server.ask(key, "Which beds are there?")
    page = tabs.open(f"{server.url}/#/c/{key}")
    page.get_by_role("button", name="Rename the chat").click()
    page.get_by_role("button", name="Let the model write it").click()
    expect(page.get_by_role("heading", name="A garden plan")).to_be_visible()
    expect(page.get_by_role("link", name="A garden plan")).to_be_visible()


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_branches_are_counted_and_switched(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    key = server.begin(f"branches-{phone}")
    first = server.ask(key, "First wording")
    server.ask(key, "A later question")
    path = f"/v1/conversations/{key}/messages/{first['message']}"
    server.client.put(path, json={"text": "Second wording", "stream": False})
    page = tabs.open(f"{server.url}/#/c/{key}", phone=phone)
    expect(page.locator(".branches")).to_contain_text("2/2")
    page.get_by_role("button", name="Earlier question").click()
    expect(page.locator(".bubble")).to_have_text(["First wording", "A later question"])
    expect(page.locator(".branches").first).to_contain_text("1/2")
    page.get_by_role("button", name="Answer again").first.click()
    expect(page.get_by_text("A new answer starts a branch here.")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Go on from here").first.click()
    expect(page.locator(".bubble")).to_have_text(["First wording"])
    tabs.check_width(page)


def test_formulas_are_drawn(start: StartServer, tabs: Tabs) -> None:
    server = start(ScriptedProvider("Half of $\\alpha$ is:\n\n$$\\frac{\\alpha}{2}$$\n\nIt costs $5 and $6."))
    key = server.begin("formulas")
    server.ask(key, "What is half of it?")
    page = tabs.open(f"{server.url}/#/c/{key}")
    expect(page.locator(".answer math")).to_have_count(2)
    expect(page.locator(".formula mfrac")).to_contain_text("\N{GREEK SMALL LETTER ALPHA}")
    expect(page.locator(".answer")).to_contain_text("It costs $5 and $6.")


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_prepared_conversation_has_a_break_and_a_question_to_press(
    start: StartServer, tabs: Tabs, *, phone: bool
) -> None:
    provider = SteppedProvider("At ", "seven.")
    provider.allow(0)
    server = start(provider)
    page = tabs.open(server.url, phone=phone)
    page.get_by_role("button", name="Show me an example").click()
    expect(page.get_by_role("heading", name="Welcome: see what was sent")).to_be_visible()
    if phone:
        page.get_by_role("button", name="What was sent").click()
    else:
        expect(page.get_by_label("Message", exact=True)).to_be_focused()
        expect(page.locator(".beside .cause")).to_contain_text(["rules", "changed"])
    picture = page.get_by_role("slider", name="Turn")
    expect(picture).to_have_attribute("aria-valuemax", "5")
    expect(page.locator(".slider .break")).to_have_count(1)
    page.get_by_role("button", name="At what time do we water now?").click()
    # The layer of the question is there before the first word of the answer.
    expect(picture).to_have_attribute("aria-valuemax", "6")
    expect(picture).to_have_attribute("aria-valuetext", re.compile("Turn 6: .* It only adds to the request before"))
    expect(page.get_by_text("The answer is on its way")).to_be_attached()
    provider.allow(2)
    expect(page.locator(".answer").last).to_contain_text("At seven.")
    tabs.check_width(page)


def test_embedded_model_answers_in_the_prepared_conversation(tabs: Tabs) -> None:
    with running("memory:", None, vault=Path("examples/vault"), model="local") as server:
        key = server.client.post("/v1/conversations/welcome").json()["conversation"]
        server.client.patch(f"/v1/conversations/{key}/settings", json={"settings": {"temperature": 0}})
        page = tabs.open(f"{server.url}/#/c/{key}")
        page.get_by_role("button", name="At what time do we water now?").click()
        expect(page.get_by_role("slider", name="Turn")).to_have_attribute("aria-valuemax", "6")
        expect(page.get_by_role("button", name="Stop the answer")).to_have_count(0)
        said = server.client.get(f"/v1/conversations/{key}").json()["turns"][-1]["reply"]["text"]
        expect(page.locator(".answer .markdown").last).to_contain_text(said.split()[0])
        # What its cache served is reported by the model's own engine.
        expect(page.locator(".beside")).not_to_contain_text("not reported")
        tabs.close(page)


WRITTEN = "# Beds\n\nBed 7 has leeks.\n"


class WritingProvider(ScriptedProvider):
    """Wants to write a note for every question, and then says what became of it."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        last = request.messages[-1]
        arguments = json.dumps({"path": "beds.md", "content": WRITTEN})
        wants = ScriptedReply(calls=(ToolCall(id=f"w{len(request.messages)}", name="write_note", arguments=arguments),))
        self._replies.append(wants if last.role is Role.USER else ScriptedReply(text=f"It says: {last.text}"))
        async for delta in super().stream(request):
            yield delta


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A note that a model may change if the user says yes."""
    monkeypatch.setenv("LAMELLA_NOTE_BACKUPS", str(tmp_path / "backups"))
    (tmp_path / "vault").mkdir()
    path = tmp_path / "vault" / "beds.md"
    path.write_text("# Beds\n\nBed 7 has beans.\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_note_is_written_after_a_yes_that_a_reload_did_not_lose(
    start: StartServer, tabs: Tabs, note: Path, *, phone: bool
) -> None:
    server = start(WritingProvider(), vault=note.parent)
    page = tabs.open(f"{server.url}/#/c/{server.begin('writing', settings={'runner': 'agent'})}", phone=phone)
    ask(page, "Put leeks into bed 7.")
    asked = page.get_by_role("region", name="The model wants to change beds.md")
    expect(asked.get_by_role("button", name="Yes, write it")).to_be_visible()
    page.reload()
    expect(asked.locator(".hl-del")).to_have_text("-Bed 7 has beans.")
    expect(asked.locator(".hl-add")).to_have_text("+Bed 7 has leeks.")
    expect(page).to_have_title(re.compile(r"^\(yes or no\?\)"))
    tabs.check_width(page)
    page.get_by_role("link", name="Rules").click()
    page.get_by_role("link", name="(the model waits for your yes or no)").click()
    asked.get_by_role("button", name="Yes, write it").click()
    expect(page.locator(".answer")).to_contain_text("It says: beds.md was changed.")
    expect(asked).to_contain_text("You said yes.")
    assert note.read_text(encoding="utf-8") == WRITTEN


def test_refused_note_is_not_written_and_every_tab_shows_the_answer(start: StartServer, tabs: Tabs, note: Path) -> None:
    before = note.read_text(encoding="utf-8")
    server = start(WritingProvider(), vault=note.parent)
    address = f"{server.url}/#/c/{server.begin('refusing', settings={'runner': 'agent'})}"
    page = tabs.open(address)
    ask(page, "Put leeks into bed 7.")
    expect(page.get_by_role("button", name="Yes, write it")).to_be_visible()
    second = tabs.open_beside(page.context, address)
    expect(second.get_by_role("button", name="Yes, write it")).to_be_visible()
    second.keyboard.press("Alt+x")
    for one in (page, second):
        expect(one.get_by_text("You said no: nothing was written.")).to_be_visible()
        expect(one.locator(".answer")).to_contain_text("the user said no")
    assert note.read_text(encoding="utf-8") == before
    expect(page.get_by_role("button", name="Copy the answer")).to_be_visible()
    # Keys say yes as well.
    ask(page, "Then again.")
    expect(page.get_by_role("button", name="Yes, write it")).to_be_visible()
    page.keyboard.press("Alt+y")
    expect(page.locator(".answer").last).to_contain_text("It says: beds.md was changed.")
    assert note.read_text(encoding="utf-8") == WRITTEN


def test_turn_that_was_stopped_before_an_answer_writes_nothing(start: StartServer, tabs: Tabs, note: Path) -> None:
    before = note.read_text(encoding="utf-8")
    server = start(WritingProvider(), vault=note.parent)
    page = tabs.open(f"{server.url}/#/c/{server.begin('halting', settings={'runner': 'agent'})}")
    ask(page, "Put leeks into bed 7.")
    expect(page.get_by_role("button", name="Yes, write it")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("The turn ended before you answered: nothing was written.")).to_be_visible()
    expect(page.get_by_role("button", name="Yes, write it")).to_have_count(0)
    assert note.read_text(encoding="utf-8") == before


def test_new_chat_gets_a_title_by_itself_and_the_call_is_listed(start: StartServer, tabs: Tabs) -> None:
    server = start(TitlingProvider())
    page = tabs.open(f"{server.url}/#/memory")
    page.get_by_role("button", name="New chat").click()
    ask(page, "When is the time for it?")
    expect(page.locator(".answer")).to_contain_text("You asked")
    expect(page.get_by_role("heading", level=1)).to_have_text("A garden plan")
    expect(page.get_by_role("navigation", name="Chats").get_by_role("link", name="A garden plan")).to_be_visible()
    page.get_by_role("link", name="Prompt", exact=True).click()
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.get_by_role("region", name="Calls beside the answers", exact=True)).to_contain_text("wrote the title")


def test_title_that_was_given_is_kept(start: StartServer, tabs: Tabs) -> None:
    server = start(TitlingProvider())
    page = tabs.open(f"{server.url}/#/memory")
    page.get_by_role("button", name="New chat").click()
    page.get_by_role("button", name="Rename the chat").click()
    page.get_by_label("Title of the chat").fill("My own")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="My own")).to_be_visible()
    with page.expect_response(re.compile(r"/title\?")) as written:
        ask(page, "When is the time for it?")
    assert written.value.json()["title"] == "My own"
    expect(page.get_by_role("heading", level=1)).to_have_text("My own")


def test_title_is_found_among_more_chats_than_the_list_shows(start: StartServer, tabs: Tabs) -> None:
    server = start(EchoProvider())
    engine = server.state.get_engine(OPERATOR)
    for number in range(150):
        engine.create(f"many-{number}", title=f"Garden of year {1_850 + number}")
    page = tabs.open(f"{server.url}/#/memory")
    links = page.get_by_role("navigation", name="Chats").locator("li a")
    expect(links).to_have_count(100)
    page.get_by_label("Search all chats").fill("year 1851")
    expect(links).to_have_count(1)
    expect(links).to_contain_text("Garden of year 1851")
    page.get_by_label("Search all chats").fill("")
    expect(links).to_have_count(100)
