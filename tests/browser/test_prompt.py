"""The picture of prompts: columns, breaks with their cause, parts with their text, and the table beside it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import StartServer, Tabs
from tests.browser.test_chat import EchoProvider, ask
from tests.server.running import RunningServer, running

from lamella.core.messages import Usage
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
    expect(parts.get_by_role("listitem")).to_have_count(sum(1 for one in strata[-1]["pieces"] if one["tokens"]))
    tabs.check_width(page)


def test_break_is_named_where_the_prefix_changed(server: RunningServer, garden: str, tabs: Tabs) -> None:
    strata = server.client.get(f"/v1/conversations/{garden}/strata").json()["turns"]
    broken = [one["turn"] for one in strata if one["prefix"]["cause"] not in ("none", "first_turn")]
    page = open_prompt(tabs, server, garden)
    expect(page.locator(".columns .break")).to_have_count(len(broken))
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="plan.md was edited")).to_have_count(1)


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
    tell = "key => new BroadcastChannel('lamella').postMessage({ kind: 'conversation', key })"
    with page.expect_response(re.compile("/strata")) as read_again:
        page.evaluate(tell, garden)
    read_again.value.finished()
    expect(page.get_by_role("heading", name="What the model was sent")).to_be_visible()
    expect(detail.locator("pre")).to_contain_text("Sow 14 rows of beans there.")
    page.get_by_role("button", name="your question").click()
    expect(page.get_by_role("region", name="Part: your question").locator("pre")).to_have_text("Is that all?")


def test_talk_is_one_band_until_it_is_unfolded(server: RunningServer, garden: str, tabs: Tabs) -> None:
    page = open_prompt(tabs, server, garden)
    expect(page.get_by_role("button", name="6 earlier messages")).to_be_visible()
    page.get_by_role("button", name="Unfold the talk").click()
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
    tabs.check_width(page)
