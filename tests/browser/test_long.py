"""Long conversations: opening, scrolling, and drawing the picture stay quick."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, CDPSession, expect
from tests.browser.conftest import Tabs
from tests.server.running import RunningServer, running

from lamella.testing import ScriptedProvider

TURNS = 1_000
ANSWER = "Bed **{0}** has beans.\n\n- row {0}\n- row two\n\n```py\nx = {0}\n```"
# Processor time, which a busy machine does not stretch as it does the time on the clock.
MAX_TASK_MILLISECONDS = 200
MAX_DRAWING_MILLISECONDS = 100
TRACED = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", ScriptedProvider(*(ANSWER.format(number) for number in range(TURNS)))) as one:
        yield one


@pytest.fixture(scope="module")
def key(server: RunningServer) -> str:
    """A conversation of a thousand turns, imported in one request."""
    turns = [f"**user**: Question {number}?\n\n**ai**: {ANSWER.format(number)}\n" for number in range(TURNS)]
    archive = "\n".join(turns)
    answer = server.client.post("/v1/conversations/import", json={"archive": archive})
    assert answer.status_code in (200, 201), answer.text
    made: str = answer.json()["conversation"]
    return made


def find_longest_task(trace: bytes) -> float:
    """Return the processor time of the longest task on the main thread of a page, in milliseconds."""
    events = json.loads(trace)["traceEvents"]
    named = [one for one in events if one.get("name") == "thread_name"]
    threads = {(one["pid"], one["tid"]) for one in named if one["args"]["name"] == "CrRendererMain"}
    tasks = [one["tdur"] for one in events if (one["pid"], one["tid"]) in threads and "tdur" in one]
    assert len(tasks) > 100, "nothing was traced"
    return float(max(tasks)) / 1_000


def test_thousand_turns_open_and_scroll_without_a_long_task(
    server: RunningServer, key: str, tabs: Tabs, browser: Browser
) -> None:
    page = tabs.open("about:blank")
    browser.start_tracing(page=page, categories=TRACED)
    page.goto(f"{server.url}/#/c/{key}")
    expect(page.locator(".bubble").get_by_text(f"Question {TURNS - 1}?")).to_be_in_viewport()
    assert page.locator("article").count() < 60
    view = page.get_by_role("region", name="Conversation")
    # The page follows the end until the reader moves away from it.
    view.hover()
    page.mouse.wheel(0, -200)
    expect(page.get_by_role("button", name="To the end")).to_be_visible()
    for share in (0.75, 0.5, 0.25, 0.0):
        view.evaluate("(node, share) => { node.scrollTop = node.scrollHeight * share }", share)
    expect(page.locator(".bubble").get_by_text("Question 0?")).to_be_in_viewport()
    assert find_longest_task(browser.stop_tracing()) <= MAX_TASK_MILLISECONDS


def test_picture_of_three_hundred_turns_is_drawn_in_little_script(server: RunningServer, tabs: Tabs) -> None:
    # Other words than the thousand turns: those are a continuation of their own first three hundred.
    turns = [f"**user**: Plan {number}?\n\n**ai**: {ANSWER.format(number)}\n" for number in range(300)]
    made = server.client.post("/v1/conversations/import", json={"archive": "\n".join(turns)}).json()["conversation"]
    strata = server.client.get(f"/v1/conversations/{made}/strata").json()["turns"]
    assert len(strata) == 300
    assert all(sum(piece["tokens"] for piece in turn["pieces"]) == turn["total"] for turn in strata)
    page = tabs.open(f"{server.url}/#/memory")
    expect(page.get_by_role("heading", name="Memory")).to_be_visible()
    metrics = page.context.new_cdp_session(page)
    metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = script_seconds(metrics)
    page.evaluate("address => { location.hash = address }", f"#/c/{made}/prompt")
    expect(page.get_by_role("slider", name="Turn")).to_have_attribute("aria-valuemax", "300")
    expect(page.locator(".columns svg path").first).to_be_visible()
    spent = 1_000 * (script_seconds(metrics) - before)
    assert 0 < spent <= MAX_DRAWING_MILLISECONDS


def script_seconds(metrics: CDPSession) -> float:
    """Return the processor time of the scripts of a page."""
    found = metrics.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in found if one["name"] == "ScriptDuration"))
