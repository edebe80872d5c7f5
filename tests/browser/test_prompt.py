"""The picture of prompts: columns, breaks with their cause, parts with their text, and the table beside it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import StartServer, Tabs
from tests.browser.test_chat import EchoProvider, ask
from tests.server.running import RunningServer, running

from lamella.core.log.call import CacheUsage
from lamella.core.messages import ModelRequest, Usage
from lamella.server.state import OPERATOR
from lamella.testing import ScriptedProvider, ScriptedReply

PLAN = "# Plan\n\n" + "\n\n".join(
    f"## Bed {number}\n\nSow {number * 7} rows of beans there." for number in range(1, 20)
)


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one note."""
    folder = tmp_path_factory.mktemp("vault")
    (folder / "plan.md").write_text(PLAN, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(vault: Path) -> Iterator[RunningServer]:
    with running("memory:", EchoProvider(), vault=vault) as one:
        yield one


@pytest.fixture(scope="module")
def garden(server: RunningServer, vault: Path) -> str:
    """A conversation in which a note is edited."""
    key = server.begin("garden", settings={"layout": "library"})
    server.ask(key, "What is planned?", attach=["plan.md"])
    server.ask(key, "And when?")
    (vault / "plan.md").write_text(PLAN.replace("Sow 7 rows", "Sow 8 rows"), encoding="utf-8")
    server.ask(key, "What is different?", attach=["plan.md"])
    server.ask(key, "Is that all?")
    return key


def open_prompt(tabs: Tabs, server: RunningServer, key: str, *, phone: bool = False) -> Page:
    """Open the prompt view of a conversation."""
    page = tabs.open(f"{server.url}/#/c/{key}/prompt", phone=phone)
    expect(page.get_by_role("heading", name="What the model was sent")).to_be_visible()
    return page


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_turn_shows_its_parts_and_three_separate_numbers(
    server: RunningServer, garden: str, tabs: Tabs, *, phone: bool
) -> None:
    strata = server.client.get(f"/v1/conversations/{garden}/strata").json()["turns"]
    page = open_prompt(tabs, server, garden, phone=phone)
    expect(page.get_by_role("heading", name=f"Turn {len(strata)}")).to_be_visible()
    numbers = page.locator(".numbers")
    expect(numbers).to_contain_text(f"{strata[-1]['total']:,}")
    expect(numbers).to_contain_text(f"{strata[-1]['cache']['same']:,}")
    expect(numbers).to_contain_text("not reported")
    parts = page.get_by_role("list", name="Parts of the prompt, from its end to its start")
    pieces = [one for one in strata[-1]["pieces"] if one["tokens"]]
    rest = sum(one["tokens"] for one in pieces if one["kind"] == "overhead")
    expect(parts.get_by_role("listitem")).to_have_count(sum(1 for one in pieces if one["kind"] != "overhead"))
    expect(page.get_by_text(f"and {rest} tokens of format around the messages")).to_be_visible()
    page.get_by_role("button", name="Show every part").click()
    expect(parts.get_by_role("button", name="format around messages").first).to_be_visible()
    tabs.check_width(page)


def test_break_is_named_where_the_prefix_changed(server: RunningServer, garden: str, tabs: Tabs) -> None:
    strata = server.client.get(f"/v1/conversations/{garden}/strata").json()["turns"]
    broken = [one["turn"] for one in strata if one["prefix"]["cause"] not in ("none", "first_turn")]
    page = open_prompt(tabs, server, garden)
    expect(page.locator(".columns .break")).to_have_count(len(broken))
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="plan.md was edited")).to_have_count(1)


def test_break_says_what_the_miss_cost_in_tokens_and_money(start: StartServer, tabs: Tabs) -> None:
    spec = {"kind": "note", "path": "long.md", "text": "Sow the beans in May, in rows. " * 600}
    provider = ScriptedProvider()
    server = start(provider, model="anthropic:claude-opus-5-5")
    key = server.begin("missed")
    for number, attach in enumerate(([spec], [], [])):
        if number == 2:
            server.client.post(f"/v1/conversations/{key}/rules", json={"text": "Answer in one sentence."})
        text = f"Question {number}?"
        planned = server.client.post(f"/v1/conversations/{key}/preview", json={"text": text, "attach": attach}).json()
        read, write = planned["cache"]["read"], planned["cache"]["write"]
        usage = Usage(plain=planned["tokens"]["total"] - read - write, read=read, write=write, output=1)
        provider._replies.append(ScriptedReply(text="In May.", usage=usage))
        server.ask(key, text, attach=attach)
    miss = server.client.get(f"/v1/conversations/{key}/strata").json()["turns"][-1]["miss"]
    assert miss["tokens"] > 1_000
    page = open_prompt(tabs, server, key)
    said = page.locator(".one .cause")
    expect(said).to_contain_text("A rule changed.")
    expect(said).to_contain_text(f"{miss['tokens']:,} tokens that were in the cache had to be read again, for $0.")
    expect(page.locator(".columns text.cause").last).to_have_text(re.compile(r"^\+\$0\.\d+$"))
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="had to be read again")).to_have_count(1)


def test_note_has_one_colour_wherever_it_stands(server: RunningServer, garden: str, tabs: Tabs) -> None:
    page = open_prompt(tabs, server, garden)
    expect(page.get_by_role("list", name="Legend").get_by_text("Notes, files and pages")).to_have_count(1)
    colours = page.locator(".columns path.notes:not(.pale):not([fill])").evaluate_all(
        "paths => [...new Set(paths.map((path) => getComputedStyle(path).fill))]"
    )
    assert len(colours) == 1


def test_arrow_keys_move_between_turns(server: RunningServer, garden: str, tabs: Tabs) -> None:
    page = open_prompt(tabs, server, garden)
    slider = page.get_by_role("slider", name="Turn")
    slider.focus()
    expect(slider).to_have_attribute("aria-valuenow", "4")
    slider.press("ArrowLeft")
    expect(page.get_by_role("heading", name="Turn 3", exact=True)).to_be_visible()
    slider.press("Home")
    expect(page.get_by_role("heading", name="Turn 1", exact=True)).to_be_visible()
    expect(slider).to_have_attribute("aria-valuetext", re.compile("The first request"))


def test_part_shows_its_exact_text_and_the_reason(server: RunningServer, garden: str, tabs: Tabs) -> None:
    page = open_prompt(tabs, server, garden)
    page.get_by_role("button", name="plan.md").first.click()
    detail = page.get_by_role("region", name="Part: plan.md")
    expect(detail.locator("pre")).to_contain_text("<path>plan.md</path>")
    expect(detail.locator("pre")).to_contain_text("Sow 14 rows of beans there.")
    expect(detail).to_contain_text("Why it is there.")
    # As when another tab has changed the chat.
    with page.expect_response(re.compile("/strata")) as read_again:
        server.client.patch(f"/v1/conversations/{garden}", json={"title": "The garden"})
    read_again.value.finished()
    expect(page.get_by_role("heading", name="What the model was sent")).to_be_visible()
    expect(detail.locator("pre")).to_contain_text("Sow 14 rows of beans there.")
    page.get_by_role("button", name="your question").click()
    expect(page.get_by_role("region", name="Part: your question").locator("pre")).to_have_text("Is that all?")


def test_talk_is_one_band_until_it_is_unfolded(server: RunningServer, garden: str, tabs: Tabs) -> None:
    page = open_prompt(tabs, server, garden)
    expect(page.get_by_role("button", name="6 earlier messages")).to_be_visible()
    page.get_by_role("button", name="Show every part").click()
    expect(page.get_by_role("button", name="earlier question").first).to_be_visible()
    page.get_by_role("button", name="earlier question").first.click()
    expect(page.get_by_role("region", name="Part: earlier question").locator("pre")).to_contain_text("?")


def test_new_turn_appears_in_the_picture(server: RunningServer, tabs: Tabs) -> None:
    key = server.begin("one-more")
    server.ask(key, "First?")
    page = open_prompt(tabs, server, key)
    expect(page.get_by_role("heading", name="Turn 1")).to_be_visible()
    page.get_by_role("link", name="Chat", exact=True).click()
    ask(page, "Second?")
    expect(page.locator(".answer").last).to_contain_text("You asked: Second?")
    page.get_by_role("link", name="Prompt", exact=True).click()
    expect(page.get_by_role("heading", name="Turn 2")).to_be_visible()


def test_reported_tokens_and_cost_are_drawn_over_time(start: StartServer, tabs: Tabs) -> None:
    usage = Usage(plain=10, read=900, write=5, output=40)
    provider = ScriptedProvider(*[ScriptedReply(text="Yes.", usage=usage) for _ in range(3)])
    server = start(provider)
    key = server.begin("curves")
    for number in range(3):
        server.ask(key, f"Question {number}?")
    page = open_prompt(tabs, server, key)
    expect(page.locator(".numbers")).to_contain_text("900")
    page.get_by_role("button", name="Over time").click()
    expect(page.locator("canvas").first).to_be_visible()
    # Without a pointer over it, the values are those of the last turn.
    legend = page.locator(".u-legend").first
    expect(legend).to_contain_text("3")
    expect(legend).to_contain_text("40")
    expect(legend).not_to_contain_text("unknown")
    expect(legend).not_to_contain_text("--")
    tabs.check_width(page)


def test_marked_turns_are_compacted(start: StartServer, tabs: Tabs) -> None:
    server = start(ScriptedProvider(*["It is said at some length. " * 40] * 6))
    key = server.begin("dragged")
    for number in range(6):
        server.ask(key, f"Question {number}?")
    page = open_prompt(tabs, server, key)
    box = page.locator(".columns svg").bounding_box()
    assert box is not None
    columns = page.locator(".columns .number")
    expect(columns).to_have_count(6)
    places = [one.bounding_box() for one in columns.all()]
    first, last = places[1], places[3]
    assert first is not None
    assert last is not None
    height = box["y"] + box["height"] / 2
    page.mouse.move(first["x"], height)
    page.mouse.down()
    page.mouse.move(last["x"], height, steps=5)
    page.mouse.up()
    expect(page.get_by_text("Turns 2 to 4 are marked.")).to_be_visible()
    page.get_by_role("button", name="Plan to compact them").click()
    expect(page.get_by_label("From turn")).to_have_value("2")
    expect(page.get_by_label("Up to turn")).to_have_value("4")
    page.get_by_role("button", name="Plan it").click()
    expect(page.get_by_role("region", name="The plan")).to_be_visible()


def test_turns_are_marked_with_the_keyboard(server: RunningServer, garden: str, tabs: Tabs) -> None:
    page = open_prompt(tabs, server, garden)
    picture = page.get_by_role("slider", name="Turn")
    picture.press("Shift+ArrowLeft")
    picture.press("Shift+ArrowLeft")
    expect(page.get_by_text("Turns 2 to 4 are marked.")).to_be_visible()
    picture.press("ArrowLeft")
    expect(page.get_by_text("are marked")).to_have_count(0)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_picture_shows_what_another_layout_and_price_would_have_been(
    server: RunningServer, garden: str, tabs: Tabs, *, phone: bool
) -> None:
    page = open_prompt(tabs, server, garden, phone=phone)
    expect(page.locator(".numbers")).to_contain_text("no price")
    query = {"layout": "in_place", "model": "anthropic:claude-opus-5-5"}
    supposed = server.client.get(f"/v1/conversations/{garden}/strata", params=query).json()["turns"]
    page.get_by_label("As it would have been with").select_option("in_place")
    page.get_by_label("at the prices of").select_option("anthropic:claude-opus-5-5")
    expect(page.get_by_text("Not sent.")).to_be_visible()
    expect(page.locator(".supposed")).to_contain_text(f"{sum(one['total'] for one in supposed):,} tokens in all")
    expect(page.locator(".numbers")).to_contain_text(f"{supposed[-1]['total']:,}")
    expect(page.locator(".numbers")).not_to_contain_text("no price")
    broken = [one for one in supposed if one["prefix"]["cause"] not in ("none", "first_turn")]
    expect(page.locator(".columns .break")).to_have_count(len(broken))
    tabs.check_width(page)
    page.get_by_role("button", name="Show what was sent").click()
    expect(page.get_by_text("Not sent.")).to_have_count(0)
    expect(page.locator(".numbers")).to_contain_text("no price")


def test_pauses_and_compactions_are_named_beside_the_curves(start: StartServer, tabs: Tabs) -> None:
    server = start(ScriptedProvider())
    chat = server.state.get_engine(OPERATOR).create("paused", summarizer="off")
    begun = datetime(2026, 11, 18, 10, tzinfo=UTC)
    for number, minutes in enumerate((0, 1, 90, 91)):
        at = begun + timedelta(minutes=minutes)
        chat.ask(f"Question {number}?", at=at)
        chat.reply("It is said at some length. " * 60, at=at)
    chat.compact(to=0.0001)
    chat.ask("And now?", at=begun + timedelta(minutes=92))
    page = open_prompt(tabs, server, chat.id)
    page.get_by_role("button", name="Over time").click()
    expect(page.locator("canvas").first).to_be_visible()
    expect(page.get_by_text("pauses of 1 h before turn 3")).to_be_visible()
    expect(page.get_by_text("compacted before turn 5")).to_be_visible()


class EmptyCacheProvider(ScriptedProvider):
    """Knows that its cache is empty, as a model in this process does when a server has just started."""

    async def predict_cache_usage(self, request: ModelRequest) -> CacheUsage:
        return CacheUsage(read=0, write=0, uncached=sum(message.tokens for message in request.messages))


def test_continued_chat_says_why_nothing_was_cached_and_previews_it(tabs: Tabs, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/chats.db"
    with running(store, ScriptedProvider("At noon."), model="scripted:tides") as server:
        key = server.begin("begun", title="About @docs/tides.md")
        server.ask(key, "When does the sluice open? " + "It is beside the harbour. " * 20)
    provider = EmptyCacheProvider(ScriptedReply(text="At dusk.", usage=Usage(plain=200, read=0, output=4)))
    with running(store, provider, model="scripted:tides") as server:
        page = tabs.open(f"{server.url}/#/c/{key}")
        expect(page.get_by_role("heading", name="About docs/tides.md")).to_be_visible()
        expect(page.get_by_role("link", name="About docs/tides.md")).to_be_visible()
        page.get_by_label("Message", exact=True).fill("And when does it close?")
        expect(page.locator(".estimate")).to_contain_text(re.compile(r"\b0 cached"))
        ask(page, "And when does it close?")
        expect(page.locator(".answer").last).to_contain_text("At dusk.")
        expect(page.locator(".beside .verdict")).to_contain_text("Nothing of it was cached, as expected")
        page.get_by_role("link", name="Prompt", exact=True).click()
        expect(page.locator("p.verdict")).to_contain_text("Nothing of it was cached, as expected")
        page.get_by_role("button", name="Table", exact=True).click()
        expect(page.get_by_role("row").filter(has_text="Nothing of it was cached, as expected")).to_have_count(1)
        tabs.close(page)
