"""A real Chromium over a real server, whose model is a script. A test fails if the page logs an error."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from tests.browser.chromium import get_chromium
from tests.server.running import RunningServer, running

StartServer = Callable[..., RunningServer]

# A bound for tests that hang, on a machine whose cores are busy with something else. It decides nothing else.
PATIENCE_MILLISECONDS = 60_000
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What servers of a test remember and trust is theirs."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as own:
        own.setenv("LAMELLA_MEMORY_FOLDER", str(folder / "memory"))
        own.setenv("XDG_CONFIG_HOME", str(folder))
        yield


# Not for the whole session: while Playwright runs, no other test of this process can run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without a window."""
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=get_chromium(), args=arguments)
        yield browser
        browser.close()


@dataclass
class Tabs:
    """Opens tabs, and keeps what they log as errors."""

    browser: Browser
    problems: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def open(self, address: str, *, phone: bool = False, theme: str = "light") -> Page:
        """Open a page in a browser of its own, without anything stored."""
        context = self.browser.new_context(
            viewport={**(PHONE if phone else DESKTOP)},  # type: ignore[arg-type]  # the same keys
            color_scheme="dark" if theme == "dark" else "light",
            has_touch=phone,
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        self.contexts.append(context)
        return self.open_beside(context, address)

    def open_beside(self, context: BrowserContext, address: str) -> Page:
        """Open another tab of the same browser."""
        page = context.new_page()
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.problems.append(f"{error.name}: {error.message}"))
        page.goto(address)
        return page

    def close(self, page: Page) -> None:
        """Close the browser of a page, before its server ends."""
        self.contexts.remove(page.context)
        page.context.close()

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(one in message.text for one in self.expected):
            self.problems.append(f"{message.type}: {message.text} {message.location['url']}")

    def check_width(self, page: Page) -> None:
        """Fail if the page can be scrolled sideways."""
        wider = page.locator("html").evaluate("page => page.scrollWidth - page.clientWidth")
        assert wider == 0, f"the page is {wider} px too wide"


@pytest.fixture
def start() -> Iterator[StartServer]:
    """Starts servers that run until the tabs of the test are closed."""
    with ExitStack() as servers:
        yield lambda provider, **more: servers.enter_context(running("memory:", provider, **more))


@pytest.fixture
def tabs(browser: Browser, start: StartServer) -> Iterator[Tabs]:
    """Tabs of this test; errors in their consoles fail it."""
    opened = Tabs(browser)
    yield opened
    for context in opened.contexts:
        context.close()
    assert opened.problems == []
