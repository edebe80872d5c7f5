"""Take the screenshots of docs/images: the page over a real server, with a conversation in which a note is edited and a rule added.

Run it by hand after a change of the page: ``python -m tests.browser.screenshots``. The model is a script, its prices and
its cache are those of a real one, and what it reports as cached is what was predicted. Nothing is sent.
"""

import shutil
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.browser.chromium import get_chromium
from tests.server.running import RunningServer, running

from lamella.core.messages import Usage
from lamella.testing import ScriptedProvider, ScriptedReply

FOLDER = Path("docs/images")
VAULT = Path("examples/vault")
MODEL = "anthropic:claude-opus-5-5"
SIZE = (1240, 780)
SPEC, API = "project-spec.md", "docs/api-docs.md"
TURNS: tuple[tuple[str, list[str], str], ...] = (
    ("What are we building?", [SPEC], "A service to book desks for half a day or a day, in place of a spreadsheet."),
    ("Which calls does the API have?", [API], "Ten: for desks, bookings and tokens. `POST /v1/bookings` books a desk."),
    ("Which of them may everybody use?", [], "`POST /v1/tokens` and `POST /v1/tokens/renew`. All others need a scope."),
    (
        "I changed the spec. What is different?",
        [SPEC],
        "Booking has to take 100 milliseconds at most. It was 200 before.",
    ),
    ("Does the API promise that?", [SPEC, API], "No: it says nothing about how long a call takes."),
    (
        "Write a request that books a desk.",
        [],
        "This books desk 14 on floor 3 for a morning. It needs the scope `book`:\n\n```json\n"
        '{"desk": "3.14", "day": "2026-11-16", "half": "am"}\n```\n\n'
        "Until the half day begins, `DELETE /v1/bookings/{id}` cancels it.",
    ),
)
EDIT = ("at most 200 milliseconds", "at most 100 milliseconds")
# An edited note keeps the cache, since only its change is sent. A rule stands in the system prompt and breaks the prefix.
EDITED, RULED = 3, 4
RULE = "Answer yes or no first."


def main() -> int:
    """Take every screenshot, and return the exit code."""
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        vault = Path(name) / "vault"
        shutil.copytree(VAULT, vault)
        browser = playwright.chromium.launch(
            executable_path=get_chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        provider = ScriptedProvider()
        with running(f"sqlite:///{name}/chats.db", provider, vault=vault, model=MODEL) as server:
            take_screenshots(browser, server, prepare(server, provider, vault))
            browser.close()
    return 0


def prepare(server: RunningServer, provider: ScriptedProvider, vault: Path) -> str:
    """Create the conversations, and return the key of the one to show."""
    for number, title in enumerate(("Notes on the move", "Who has which key?", "Plan of the office")):
        server.begin(f"other-{number}", title=title)
    key = server.begin("desks", title="Book desks in the office")
    for number, (question, attached, answer) in enumerate(TURNS):
        if number == EDITED:
            spec = vault / SPEC
            spec.write_text(spec.read_text(encoding="utf-8").replace(*EDIT), encoding="utf-8")
        if number == RULED:
            server.client.post(f"/v1/conversations/{key}/rules", json={"text": RULE}).raise_for_status()
        body = {"text": question, "attach": attached}
        planned = server.client.post(f"/v1/conversations/{key}/preview", json=body).json()
        read, written = planned["cache"]["read"], planned["cache"]["write"]
        plain = planned["tokens"]["total"] - read - written
        usage = Usage(plain=plain, read=read, write=written, output=len(answer) // 4)
        provider._replies.append(ScriptedReply(text=answer, usage=usage))
        server.ask(key, question, attach=attached)
    return key


def take_screenshots(browser: Browser, server: RunningServer, key: str) -> None:
    """Take one of each screen that the documentation shows."""
    address = f"{server.url}/#/c/{key}"
    page = open_page(browser, f"{address}/prompt")
    picture = page.get_by_role("slider", name="Turn")
    expect(picture).to_have_attribute("aria-valuemax", str(len(TURNS)))
    page.locator(".columns .number").nth(RULED).click()
    expect(page.get_by_role("heading", name=f"Turn {RULED + 1}")).to_be_visible()
    save(page, "page-prompt.png")

    page = open_page(browser, address)
    expect(page.locator(".estimate")).to_contain_text("$")
    expect(page.locator(".code")).to_be_visible()
    page.get_by_label("Message", exact=True).press_sequentially("Compare it with @off")
    expect(page.get_by_role("listbox", name="Notes")).to_be_visible()
    save(page, "page-chat.png")

    page = open_page(browser, f"{address}/library")
    page.get_by_role("button", name="api-docs").click()
    expect(page.locator(".commands")).not_to_contain_text("…")
    expect(page.locator(".commands")).to_contain_text("If it changed")
    save(page, "page-library.png")


def open_page(browser: Browser, address: str) -> Page:
    """Open a page in a browser of its own."""
    page = browser.new_context(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light").new_page()
    page.goto(address)
    return page


def save(page: Page, name: str) -> None:
    """Write what a page shows, without a focus ring."""
    page.mouse.move(0, 0)
    picture = Image.open(BytesIO(page.screenshot(animations="disabled", caret="hide"))).convert("RGB")
    FOLDER.mkdir(exist_ok=True)
    # A screenshot has few colours: a palette halves its bytes.
    picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)
    sys.stdout.write(f"{FOLDER / name}: {(FOLDER / name).stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    sys.exit(main())
