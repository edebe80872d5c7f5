"""Each screen in both themes and both sizes: the rules of axe, no sideways scroll, and no error in the console."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.browser.conftest import Tabs
from tests.browser.test_chat import EchoProvider
from tests.server.running import RunningServer, running

SCREENS = {
    "chat": "/#/c/{key}",
    "prompt": "/#/c/{key}/prompt",
    "library": "/#/c/{key}/library",
    "compaction": "/#/c/{key}/compaction",
    "rules": "/#/c/{key}/rules",
    "workflow": "/#/c/{key}/workflow",
    "settings": "/#/c/{key}/settings",
    "memory": "/#/memory",
    "server": "/#/server",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    vault = tmp_path_factory.mktemp("vault")
    (vault / "beds.md").write_text("# Beds\n\n" + "Bed 7 has 21 rows of beans.\n" * 40, encoding="utf-8")
    with running("memory:", EchoProvider(), vault=vault) as one:
        yield one


@pytest.fixture(scope="module")
def key(server: RunningServer) -> str:
    """A conversation with attachments, markdown, a rule and something that waits."""
    made = server.begin("garden", title="The garden", settings={"layout": "library"})
    server.ask(made, "When to sow beans? Always name the bed.", attach=["beds.md"])
    server.ask(made, "And then? Something with beans again.")
    server.client.post(f"/v1/conversations/{made}/rules", json={"text": "Answer in one sentence."})
    server.client.post(f"/v1/conversations/{made}/attachments", json={"attach": ["beds.md"]})
    server.client.post("/v1/memory", json={"text": "Grows beans."})
    return made


def find_violations(page: Page) -> list[str]:
    """Return what the rules of axe object to, with the elements."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]


def open_screen(tabs: Tabs, server: RunningServer, key: str, screen: str, *, phone: bool, theme: str) -> Page:
    """Open a screen, and wait until it shows what it loads."""
    page = tabs.open(server.url + SCREENS[screen].format(key=key), phone=phone, theme=theme)
    page.wait_for_load_state("networkidle")
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    return page


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("screen", SCREENS)
def test_screen_is_accessible_and_fits(
    server: RunningServer, key: str, tabs: Tabs, screen: str, *, phone: bool, theme: str
) -> None:
    page = open_screen(tabs, server, key, screen, phone=phone, theme=theme)
    assert find_violations(page) == []
    tabs.check_width(page)


def test_opened_details_are_accessible(server: RunningServer, key: str, tabs: Tabs) -> None:
    page = open_screen(tabs, server, key, "prompt", phone=False, theme="light")
    page.get_by_role("button", name="beds.md").first.click()
    expect(page.get_by_role("region", name="Part: beds.md").locator("pre")).to_contain_text("Bed 7")
    assert find_violations(page) == []
    page.get_by_role("button", name="Table", exact=True).click()
    assert find_violations(page) == []
    page.get_by_role("link", name="Chat", exact=True).click()
    page.get_by_label("Message", exact=True).press_sequentially("@be")
    expect(page.get_by_role("option", name="beds.md")).to_be_visible()
    assert find_violations(page) == []
    page.get_by_label("Message", exact=True).press("Escape")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    assert find_violations(page) == []


def test_screens_are_reached_with_the_keyboard_alone(server: RunningServer, key: str, tabs: Tabs) -> None:
    page = open_screen(tabs, server, key, "chat", phone=False, theme="light")
    for number, heading in ((2, "What the model was sent"), (3, "Library"), (4, "Compaction"), (5, "Rules")):
        page.keyboard.press(f"Alt+{number}")
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    page.keyboard.press("Alt+1")
    expect(page.get_by_label("Message", exact=True)).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
