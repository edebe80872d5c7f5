"""The screens over the embedded model: what it answers, reports and caches is its own, and nothing is scripted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Tabs
from tests.browser.test_chat import ask
from tests.server.running import RunningServer, running

BOTH_SIZES = pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
SHORT = {"temperature": 0, "system": "Answer with at most five words."}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    vault: Path = tmp_path_factory.mktemp("vault")
    (vault / "beds.md").write_text("# Beds\n\nBed 7 has beans. Bed 8 has leeks.\n", encoding="utf-8")
    with running("memory:", None, vault=vault, model="local") as one:
        yield one


@pytest.fixture(scope="module")
def key(server: RunningServer) -> str:
    """A conversation with a note, in which the embedded model has answered twice."""
    made = server.begin("garden", settings=SHORT)
    server.ask(made, "What does bed 7 have?", attach=["beds.md"])
    server.ask(made, "And bed 8?")
    return made


def read_strata(server: RunningServer, key: str) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = server.client.get(f"/v1/conversations/{key}/strata").json()["turns"]
    return turns


@BOTH_SIZES
def test_new_chat_attaches_a_note_and_is_answered(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    made = server.client.post("/v1/conversations", json={"settings": SHORT}).json()["conversation"]
    page = tabs.open(f"{server.url}/#/c/{made}", phone=phone)
    field = page.get_by_label("Message", exact=True)
    field.press_sequentially("@bed")
    expect(page.get_by_role("option", name="beds.md")).to_be_visible()
    field.press("Enter")
    expect(page.get_by_role("list", name="Attached to the next message").get_by_role("listitem")).to_contain_text(
        "tokens"
    )
    with page.expect_response(lambda one: "/title" in one.url) as titled:
        ask(page, "What does bed 7 have?")
    turn = server.client.get(f"/v1/conversations/{made}").json()["turns"][0]
    expect(page.locator(".answer .markdown")).to_contain_text(turn["reply"]["text"].split()[0].strip("*_`#"))
    # The title is the model's own, and the call that wrote it is in the ledger.
    title = titled.value.json()["title"]
    expect(page.get_by_role("heading", level=1)).to_have_attribute("title", title)
    calls = server.client.get(f"/v1/conversations/{made}/ledger").json()["turns"][0]["calls"]
    assert [one["purpose"] for one in calls] == ["answer", "title"]
    tabs.check_width(page)


@BOTH_SIZES
def test_prompt_shows_what_the_engine_reported(server: RunningServer, key: str, tabs: Tabs, *, phone: bool) -> None:
    last = read_strata(server, key)[-1]
    assert last["cache"]["reported"] > 0
    page = tabs.open(f"{server.url}/#/c/{key}/prompt", phone=phone)
    numbers = page.locator(".numbers > div")
    expect(numbers.filter(has_text="Reported")).to_contain_text(f"{last['cache']['reported']:,}")
    expect(numbers.filter(has_text="Predicted")).to_contain_text(f"{last['cache']['predicted']:,}")
    page.get_by_role("button", name="beds.md").first.click()
    expect(page.get_by_role("region", name="Part: beds.md").locator("pre")).to_contain_text("Bed 8 has leeks.")
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.get_by_role("region", name="Turns as a table").get_by_role("row")).to_have_count(
        len(read_strata(server, key)) + 1
    )
    tabs.check_width(page)


@BOTH_SIZES
def test_library_counts_with_the_model_s_own_tokenizer(
    server: RunningServer, key: str, tabs: Tabs, *, phone: bool
) -> None:
    (artifact,) = server.client.get(f"/v1/conversations/{key}/attachments").json()["artifacts"]
    page = tabs.open(f"{server.url}/#/c/{key}/library", phone=phone)
    row = page.get_by_role("button", name="beds")
    expect(row).to_contain_text(str(artifact["tokens"]))
    expect(row).to_contain_text("of the tokens")
    row.click()
    expect(page.locator(".commands > div").filter(has_text="Drop")).to_contain_text("tokens")
    tabs.check_width(page)


@BOTH_SIZES
def test_rule_breaks_the_cache_and_the_picture_says_so(server: RunningServer, tabs: Tabs, *, phone: bool) -> None:
    made = server.begin(f"ruled-{phone}", settings={**SHORT, "layout": "library"})
    server.ask(made, "What does bed 7 have?", attach=["beds.md"])
    page = tabs.open(f"{server.url}/#/c/{made}/rules", phone=phone)
    page.get_by_label("A rule").fill("Name the bed first.")
    page.get_by_role("button", name="Add the rule").click()
    expect(page.get_by_text("added by you")).to_be_visible()
    server.ask(made, "And bed 8?")
    page.get_by_role("link", name="Prompt", exact=True).click()
    expect(page.locator(".one .cause")).to_contain_text("A rule changed.")
    expect(page.locator(".columns .break")).to_have_count(1)
    tabs.check_width(page)


def test_compaction_is_planned_and_undone(server: RunningServer, tabs: Tabs) -> None:
    made = server.begin("compacted", settings=SHORT)
    for number in range(3):
        server.ask(made, f"Is {number} a number? " + "Sow beans in rows. " * 20)
    page = tabs.open(f"{server.url}/#/c/{made}/compaction")
    page.get_by_role("button", name="Plan it").click()
    plan = page.get_by_role("region", name="The plan")
    expect(plan.get_by_text("Certificate: what the model can still get at")).to_be_visible()
    plan.get_by_role("button", name="Compact").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("This chat was not compacted")).to_be_visible()


@BOTH_SIZES
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/#/c/{key}/workflow", "Request for comments"),
        ("/#/c/{key}/settings", "local"),
        ("/#/server", "model"),
        ("/#/memory", "Memory"),
    ],
)
def test_other_screens_open(server: RunningServer, key: str, tabs: Tabs, path: str, text: str, *, phone: bool) -> None:
    page = tabs.open(server.url + path.format(key=key), phone=phone)
    expect(page.locator("main").get_by_text(text).first).to_be_visible()
    tabs.check_width(page)
