"""The screens beside the chat: library, compaction, rules, memory, workflow, settings, trust and the login."""

import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import FilePayload, Route, expect
from tests.browser.conftest import StartServer, Tabs
from tests.browser.test_chat import EchoProvider, ask
from tests.server.running import RunningServer, running

from lamella.attach import Note
from lamella.server.state import OPERATOR
from lamella.settings.tokens import AccessScope, AccessTokenFile
from lamella.testing import ScriptedProvider

NOTE = "# Beds\n\n" + "\n".join(f"- Bed {number} has {number * 3} rows of beans" for number in range(1, 60))
LONG = "\n".join(f"Row {number} of bed {number} carries the label B-{number * 17}." for number in range(80))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    vault = tmp_path_factory.mktemp("vault")
    (vault / "beds.md").write_text(NOTE, encoding="utf-8")
    (vault / "tools.md").write_text("# Tools\n\nA spade and a rake.\n\n## Sharp things\n\nA knife.\n", encoding="utf-8")
    (vault / "growing").mkdir()
    (vault / "growing" / "leeks.md").write_text("Leeks are slow. #garden\n", encoding="utf-8")
    with running("memory:", EchoProvider(), vault=vault) as one:
        yield one


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_attached_note_is_counted_pinned_and_dropped(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    key = server.begin(f"library-{phone}")
    server.ask(key, "Which beds?", attach=["beds.md"])
    page = tabs.open(f"{server.url}/#/c/{key}/library", phone=phone)
    page.get_by_label("What to attach").fill("tools.md")
    page.get_by_role("button", name="Attach", exact=True).click()
    expect(page.get_by_role("button", name="tools")).to_contain_text("waits")
    page.get_by_role("button", name="beds").click()
    expect(page.locator(".commands")).to_contain_text("tokens")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    before = server.client.post(f"/v1/conversations/{key}/preview", json={"text": ""}).json()["tokens"]["total"]
    page.get_by_role("button", name="Drop", exact=True).click()
    expect(page.locator(".sum")).not_to_contain_text(f"{before:,}")
    after = server.client.post(f"/v1/conversations/{key}/preview", json={"text": ""}).json()["tokens"]["total"]
    assert after < before
    expect(page.locator(".sum")).to_contain_text(f"{after:,}")
    tabs.check_width(page)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_note_is_completed_attached_and_removed_in_the_composer(
    server: RunningServer, tabs: Tabs, *, phone: bool
) -> None:
    key = server.begin(f"composer-{phone}")
    page = tabs.open(f"{server.url}/#/c/{key}", phone=phone)
    field = page.get_by_label("Message", exact=True)
    field.press_sequentially("See @bed")
    expect(page.get_by_role("option", name="beds.md")).to_be_visible()
    field.press("Enter")
    chip = page.get_by_role("list", name="Attached to the next message").get_by_role("listitem")
    expect(chip).to_contain_text("beds")
    expect(chip).to_contain_text("tokens")
    expect(field).to_have_value("See ")
    page.get_by_role("button", name="Remove beds").click()
    expect(chip).to_have_count(0)
    field.fill("")
    field.press_sequentially("[[tool")
    page.get_by_role("option", name="tools.md").click()
    ask(page, "What is in it?")
    expect(page.locator(".attached")).to_contain_text("tools.md")
    expect(page.locator(".answer")).to_contain_text("You asked: What is in it?")
    tabs.check_width(page)


PASTE = """(field, given) => {
  const bytes = Uint8Array.from(atob(given.data), (one) => one.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], given.name, { type: given.type }));
  const event = given.kind === "paste"
    ? new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
  field.dispatchEvent(event);
}"""


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_pasted_dropped_and_chosen_files_become_chips(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    tabs.expected.append("400")
    page = tabs.open(f"{server.url}/#/c/{server.begin(f'files-{phone}')}", phone=phone)
    field = page.get_by_label("Message", exact=True)
    drawn = BytesIO()
    Image.effect_noise((1600, 900), 60).save(drawn, "PNG")
    picture = b64encode(drawn.getvalue()).decode()
    field.evaluate(PASTE, {"kind": "paste", "name": "plan.png", "type": "image/png", "data": picture})
    chips = page.get_by_role("list", name="Attached to the next message").get_by_role("listitem")
    expect(chips).to_have_count(1)
    expect(chips.first).to_contain_text("plan.png")
    expect(chips.first.locator("img")).to_have_js_property("complete", value=True)
    assert chips.first.locator("img").evaluate("node => node.naturalWidth") > 0
    field.evaluate(PASTE, {"kind": "drop", "name": "note.txt", "type": "text/plain", "data": "c2VlZHM="})
    expect(chips).to_have_count(2)
    chosen = page.locator("input[type=file]")
    chosen.set_input_files(FilePayload(name="list.csv", mimeType="text/csv", buffer=b"seeds,soil"))
    expect(chips).to_have_count(3)
    expect(chips.last).to_contain_text("tokens")
    chosen.set_input_files(FilePayload(name="a.bin", mimeType="application/x-thing", buffer=b"\0\1"))
    expect(page.get_by_role("alert")).to_contain_text("a.bin is not a picture that models take")
    page.get_by_role("button", name="Dismiss").click()
    page.get_by_role("button", name="Remove note").click()
    expect(chips).to_have_count(2)
    ask(page, "What is drawn there?")
    shown = page.get_by_role("list", name="Attached", exact=True).get_by_role("img")
    expect(shown).to_be_visible()
    # What is shown is small; the whole picture is one click away.
    expect(shown).to_have_js_property("complete", value=True)
    assert shown.evaluate("node => Math.max(node.naturalWidth, node.naturalHeight)") <= 384
    opened = page.get_by_role("link", name="Open the attached picture").get_attribute("href")
    assert server.client.get(opened or "").content == drawn.getvalue()
    expect(page.locator(".answer")).to_contain_text("You asked: What is drawn there?")
    tabs.check_width(page)


def test_folders_tags_headings_and_pages_are_completed(server: RunningServer, tabs: Tabs) -> None:
    page = tabs.open(f"{server.url}/#/c/{server.begin('names')}")
    field = page.get_by_label("Message", exact=True)
    option = page.get_by_role("listbox", name="Notes").get_by_role("option")
    for begun, kind, name in (
        ("@grow", "folder", "growing/"),
        ("@#gar", "tag", "#garden"),
        ("[[tools#Sharp", "heading", "tools.md#Sharp things"),
        ("@https://example.org/beds", "page", "https://example.org/beds"),
    ):
        field.fill("")
        field.press_sequentially(begun)
        expect(option.filter(has_text=kind)).to_contain_text(name)
    field.fill("")
    field.press_sequentially("[[tools#Sharp")
    option.filter(has_text="heading").click()
    chip = page.get_by_role("list", name="Attached to the next message").get_by_role("listitem")
    expect(chip).to_contain_text("tokens")
    expect(field).to_have_value("")


def test_price_is_known_before_sending_and_an_expired_cache_says_what_it_costs(start: StartServer, tabs: Tabs) -> None:
    server = start(ScriptedProvider(), model="anthropic:claude-opus-5-5")
    long = Note(path="long.md", text="Sow the beans in May, in rows. " * 2_000)
    fresh = server.state.get_engine(OPERATOR).create("fresh", model="anthropic:claude-opus-5-5")
    fresh.ask("When?", attach=[long])
    fresh.reply("In May.")
    old = server.state.get_engine(OPERATOR).create("old", model="anthropic:claude-opus-5-5")
    old.ask("When?", attach=[long], at=datetime(2026, 11, 1, tzinfo=UTC))
    old.reply("In May.", at=datetime(2026, 11, 1, tzinfo=UTC))
    page = tabs.open(f"{server.url}/#/c/{fresh.id}")
    expect(page.locator(".estimate")).to_contain_text(re.compile(r"[1-9][\d,]+ cached.*\$0\.\d+"))
    expect(page.get_by_text("The cache has expired.")).to_have_count(0)
    page.get_by_role("combobox", name="Model").locator("option").first.wait_for(state="attached")
    expect(page.get_by_role("combobox", name="Model")).to_have_attribute(
        "title", re.compile(r"1M tokens · \$4 in, \$0.2 cached")
    )
    page.get_by_role("link", name="When?").last.click()
    expect(page.get_by_text(re.compile(r"The cache has expired\. .* costs \$0\.\d+"))).to_be_visible()
    expect(page.locator(".estimate")).to_contain_text("0 cached")


def test_library_says_what_each_command_does_before_it_is_pressed(start: StartServer, tabs: Tabs) -> None:
    server = start(ScriptedProvider(), model="anthropic:claude-opus-5-5")
    chat = server.state.get_engine(OPERATOR).create("weighed", model="anthropic:claude-opus-5-5")
    chat.ask("When?", attach=[Note(path="beds.md", text=NOTE)])
    chat.reply("In May.")
    page = tabs.open(f"{server.url}/#/c/{chat.id}/library")
    row = page.get_by_role("button", name="beds")
    expect(row).to_contain_text("of the price")
    row.click()
    commands = page.locator(".commands > div")
    expect(commands.filter(has_text="Drop")).to_contain_text(re.compile(r"\u2212[\d,]+ tokens, "))
    expect(commands.filter(has_text="Pin")).to_contain_text(re.compile(r"tokens, "))
    expect(commands.filter(has_text="Detach")).to_contain_text(re.compile(r"tokens, "))
    expect(commands.filter(has_text="Read again")).to_contain_text("If it changed")
    expect(page.locator(".commands")).not_to_contain_text("…")


def test_library_says_what_attaching_does_before_it_is_pressed(server: RunningServer, tabs: Tabs) -> None:
    page = tabs.open(f"{server.url}/#/c/{server.begin('weigh')}/library")
    page.get_by_label("What to attach").press_sequentially("tools.md")
    expect(page.get_by_text(re.compile(r"Attaching it: \+[\d,]+ tokens"))).to_be_visible()


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_compaction_is_planned_committed_and_undone(start: StartServer, tabs: Tabs, *, phone: bool) -> None:
    server = start(ScriptedProvider(*[LONG] * 6))
    key = server.begin("compacted")
    for number in range(5):
        server.ask(key, f"Question {number}?")
    page = tabs.open("about:blank", phone=phone)
    # The size of the prompt comes late, after the plan was asked for.
    held: list[Route] = []
    page.route("**/preview", lambda route: held.append(route))
    page.goto(f"{server.url}/#/c/{key}/compaction")
    expect(page.get_by_text("This chat was not compacted")).to_be_visible()
    page.get_by_role("button", name="Plan it").click()
    page.unroute("**/preview")
    plan = page.get_by_role("region", name="The plan")
    expect(plan.get_by_text("Certificate: what the model can still get at")).to_be_visible()
    expect(plan.get_by_role("row", name="Earlier questions and answers")).to_be_visible()
    tabs.check_width(page)
    plan.get_by_role("button", name="Compact").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    receipts = server.client.get(f"/v1/conversations/{key}/compactions").json()["receipts"]
    assert len(receipts) == 1
    expect(page.get_by_text(f"→ {receipts[0]['tokens_after']:,} tokens")).to_be_visible()
    page.get_by_label("Words to recall").fill("B-1343")
    page.get_by_role("button", name="Recall", exact=True).click()
    expect(page.locator(".hit").first).to_contain_text("B-1343")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("This chat was not compacted")).to_be_visible()


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_rule_is_added_and_ended(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    key = server.begin(f"rules-{phone}")
    server.ask(key, "Always answer in French. Which bed is the largest?")
    page = tabs.open(f"{server.url}/#/c/{key}/rules", phone=phone)
    expect(page.get_by_text("Always answer in French.", exact=True)).to_be_visible()
    expect(page.get_by_text("found since turn 1")).to_be_visible()
    page.get_by_label("A rule").fill("Name the bed first.")
    page.get_by_role("button", name="Add the rule").click()
    expect(page.get_by_text("added by you")).to_be_visible()
    page.get_by_role("button", name="End the rule: Name the bed first.").click()
    expect(page.get_by_text("Name the bed first.")).to_have_count(0)
    tabs.check_width(page)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_fact_is_remembered_edited_and_forgotten(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    page = tabs.open(f"{server.url}/#/memory", phone=phone)
    page.get_by_label("A fact").fill("Grows beans.")
    page.get_by_role("button", name="Remember").click()
    page.get_by_role("button", name="Edit: Grows beans.").click()
    page.get_by_label("The text of the fact").fill("Grows runner beans.")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Forget: Grows runner beans.").click()
    expect(page.get_by_role("heading", name="Nothing is remembered")).to_be_visible()
    tabs.check_width(page)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_workflow_goes_through_a_stage_and_back(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    key = server.begin(f"staged-{phone}")
    page = tabs.open(f"{server.url}/#/c/{key}/workflow", phone=phone)
    workflows = server.client.get("/v1/workflows").json()["workflows"]
    (first,) = [one for one in workflows if one["name"] == "rfc"]
    page.get_by_role("button", name=f"Begin {first['title']}").click()
    stage = first["stages"][0]
    region = page.get_by_role("region", name=stage["label"])
    expect(region).to_be_visible()
    for field in stage["required"]:
        region.get_by_label("Field", exact=True).fill(field)
        region.get_by_label("Value", exact=True).fill('["One thing."]')
        region.get_by_role("button", name="Write down").click()
        expect(region.locator("dt").filter(has_text=field)).to_be_visible()
    region.get_by_role("button", name="Submit the stage").click()
    region.get_by_label("Decision").fill("Beans it is.")
    region.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Beans it is.").first).to_be_visible()
    page.get_by_role("list", name="Stages").get_by_role("button", name=stage["label"]).click()
    page.get_by_role("button", name="Go back to this stage").click()
    expect(page.get_by_role("list", name="Stages").locator("[aria-current=step]")).to_contain_text(stage["label"])
    tabs.check_width(page)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_setting_of_a_chat_is_changed_and_reset(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    tabs.expected.append("400")
    key = server.begin(f"settings-{phone}")
    page = tabs.open(f"{server.url}/#/c/{key}/settings", phone=phone)
    page.get_by_role("button", name="Change layout").click()
    page.get_by_label("layout", exact=True).fill("nowhere")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("nowhere")
    page.get_by_label("layout", exact=True).fill("in_place")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("listitem").filter(has_text="layout")).to_contain_text("in_place")
    assert server.client.get(f"/v1/conversations/{key}/settings").json()["settings"]["layout"] == "in_place"
    page.get_by_role("button", name="Reset layout").click()
    expect(page.get_by_role("button", name="Reset layout")).to_have_count(0)
    tabs.check_width(page)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_place_is_trusted_and_taken_back(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    page = tabs.open(f"{server.url}/#/server", phone=phone)
    page.get_by_label("Setting that names it").fill("model")
    page.get_by_label("Place").fill("openai:gpt-5.5")
    page.get_by_role("button", name="Say yes").click()
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_text("Nothing yet.")).to_be_visible()
    page.get_by_label("Find a setting").fill("layout")
    expect(page.get_by_role("listitem").filter(has_text="layout").first).to_be_visible()
    tabs.check_width(page)


def test_token_is_traded_for_a_session_that_scripts_cannot_read(start: StartServer, tabs: Tabs, tmp_path: Path) -> None:
    tabs.expected.append("401")
    file = tmp_path / "tokens.json"
    token = AccessTokenFile(file).add("garden", owner="", scope=AccessScope.CHAT, since="2026-11-17")
    server = start(EchoProvider(), serve={"tokens": str(file), "hosts": ["chats.example"]})
    page = tabs.open(server.url)
    page.get_by_label("Access token").fill("lamella_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("Invalid access token.")
    page.get_by_label("Access token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Begin a chat").click()
    ask(page, "Am I in?")
    expect(page.locator(".answer")).to_contain_text("You asked: Am I in?")
    assert page.evaluate("document.cookie") == ""
    assert token not in page.evaluate("JSON.stringify(Object.entries(localStorage))")


SEE_INDEXING = """() => {
  window.seen = [];
  new MutationObserver(() => {
    const bar = document.querySelector(".indexing");
    if (bar) window.seen.push([bar.textContent.trim(), document.documentElement.scrollWidth - innerWidth]);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_page_shows_how_far_a_long_index_is(
    start: StartServer, tabs: Tabs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, phone: bool
) -> None:
    monkeypatch.setenv("LAMELLA_INDEX_FOLDER", str(tmp_path / "index"))
    (tmp_path / "vault").mkdir()
    for number in range(4_000):
        text = f"# Bed {number}\n\n" + f"Row {number} has beans, leeks and {number} kinds of salad. " * 40
        (tmp_path / "vault" / f"bed-{number}.md").write_text(text, encoding="utf-8")
    server = start(EchoProvider(), vault=tmp_path / "vault")
    page = tabs.open(f"{server.url}/#/c/{server.begin('indexed')}", phone=phone)
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    page.evaluate(SEE_INDEXING)
    assert server.client.get("/v1/notes/search", params={"q": "salad"}).json()["hits"]
    expect(page.locator(".indexing")).to_have_count(0)
    seen = page.evaluate("window.seen")
    assert seen
    for text, overflow in seen:
        assert re.fullmatch(r"Reading your notes for the search: [\d,]+ of 4,000", text)
        assert overflow <= 0
