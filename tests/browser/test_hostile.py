"""Hostile markup in answers, notes, titles, file names, tool results and rules stays text."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import StartServer, Tabs
from tests.server.running import RunningServer, running

from lamella.core.messages import Delta, ModelRequest, Role, ToolCall
from lamella.testing import ScriptedProvider, ScriptedReply

TAGS = (
    "<script>hit({n})</script>",
    "<img src=x onerror=hit({n})>",
    "<svg onload=hit({n})>",
    "<svg><script>hit({n})</script></svg>",
    "<body onload=hit({n})>",
    "<iframe src=javascript:hit({n})></iframe>",
    '<iframe srcdoc="<script>parent.hit({n})</script>"></iframe>',
    "<object data=javascript:hit({n})></object>",
    "<embed src=javascript:hit({n})>",
    "<video src=x onerror=hit({n})></video>",
    "<audio src=x onerror=hit({n})></audio>",
    "<details open ontoggle=hit({n})>x</details>",
    "<marquee onstart=hit({n})>x</marquee>",
    "<input autofocus onfocus=hit({n})>",
    "<select autofocus onfocus=hit({n})></select>",
    "<textarea autofocus onfocus=hit({n})></textarea>",
    "<math><mtext><script>hit({n})</script></mtext></math>",
    "<style>@import 'x';</style><b onclick=hit({n})>x</b>",
    "<link rel=stylesheet href=javascript:hit({n})>",
    "<meta http-equiv=refresh content='0;url=javascript:hit({n})'>",
    "<base href=javascript:hit({n})//>",
    "<form action=javascript:hit({n})><button>x</button></form>",
    "<a href=javascript:hit({n})>x</a>",
    "<div style=background:url(javascript:hit({n}))>x</div>",
    "<p style=position:fixed;inset:0 onmouseover=hit({n})>x</p>",
)
WRAPPINGS = ("{0}", "\"'>{0}", "</div></article>{0}", "**{0}**")
LINKS = (
    "[x](javascript:hit(1))",
    "[x](JaVaScRiPt:hit(1))",
    "[x](&#106;avascript:hit(1))",
    "[x](java\tscript:hit(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5oaXQoMSk8L3NjcmlwdD4=)",
    "[x](vbscript:hit(1))",
    '[x](http://a.example "onmouseover=hit(1) ")',
    "![x](javascript:hit(1))",
    '![x](x"onerror="hit(1))',
    "<javascript:hit(1)>",
    "```html\n<script>hit(1)</script>\n```",
    '```"><img src=x onerror=hit(1)>\nx\n```',
    "`<img src=x onerror=hit(1)>`",
    "| <img src=x onerror=hit(1)> |\n|---|\n| <svg onload=hit(1)> |",
    "- [ ] <img src=x onerror=hit(1)>",
    "[^1]<img src=x onerror=hit(1)>",
)
PAYLOADS = [
    *(wrap.format(tag.format(n=number)) for number, tag in enumerate(TAGS) for wrap in WRAPPINGS),
    *LINKS,
]
# What must not be anywhere on the page, whatever was written.
FORBIDDEN = (
    "main script, main iframe, main object, main embed, main base, main meta, main link, main img, main video, main audio, "
    "main [onerror], main [onload], main [onclick], main [onfocus], main [onmouseover], main [ontoggle], "
    "main a[href^='javascript' i], main a[href^='data' i], main a[href^='vbscript' i], main .markdown [style], main style"
)


def check_nothing_ran(page: Page) -> None:
    """Fail if a payload ran, or became an element."""
    assert page.evaluate("window.hits ?? []") == []
    expect(page.locator(FORBIDDEN)).to_have_count(0)


def watch(tabs: Tabs, address: str, *, phone: bool = False) -> Page:
    """Open a page in which payloads would leave a trace."""
    page = tabs.open("about:blank", phone=phone)
    page.add_init_script(
        "window.hits = []; window.hit = (number) => window.hits.push(number); window.alert = window.hit;"
    )
    page.goto(address)
    return page


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    vault = tmp_path_factory.mktemp("vault")
    (vault / "<img src=x onerror=hit(3)>.md").write_text("\n\n".join(PAYLOADS), encoding="utf-8")
    call = ToolCall(id="c1", name="read_note", arguments=json.dumps({"path": "<img src=x onerror=hit(4)>.md"}))
    replies = [*("\n\n".join(PAYLOADS[start : start + 24]) for start in range(0, len(PAYLOADS), 24)), "End."]
    with running("memory:", ScriptedProvider(*replies, ScriptedReply(calls=(call,)), "Done."), vault=vault) as one:
        yield one


@pytest.fixture(scope="module")
def key(server: RunningServer) -> str:
    """A conversation full of payloads."""
    made = server.begin("hostile", title=PAYLOADS[1])
    for start in range(0, len(PAYLOADS), 24):
        server.ask(made, "\n".join(PAYLOADS[start : start + 5]))
    server.ask(made, "<img src=x onerror=hit(5)>", attach=["<img src=x onerror=hit(3)>.md"])
    server.ask(made, "Read it.", runner="agent")
    server.client.post(f"/v1/conversations/{made}/rules", json={"text": "Always <img src=x onerror=hit(6)> first."})
    server.client.post("/v1/memory", json={"text": "Likes <img src=x onerror=hit(7)>."})
    return made


# Turns above may still get their heights, which moves a turn out of view again: true once it stays where it is.
SETTLE = """
([node]) => node !== undefined && new Promise((done) => {
  node.scrollIntoView({ block: "center" });
  let top = NaN, calm = 0;
  const look = () => {
    if (!node.isConnected) return done(false);
    const now = node.getBoundingClientRect().top;
    calm = now === top ? calm + 1 : 0;
    top = now;
    if (calm >= 10) done(true);
    else requestAnimationFrame(look);
  };
  look();
})
"""


def scroll_to(page: Page, text: str) -> None:
    """Scroll through the conversation until a turn with this text is drawn: only turns in view are."""
    view, turn = page.get_by_role("region", name="Conversation"), page.locator("article").filter(has_text=text)
    expect(page.locator("article").first).to_be_visible()
    view.evaluate("node => { node.dispatchEvent(new WheelEvent('wheel', { deltaY: -1 })); node.scrollTop = 0 }")
    for _ in range(500):
        if turn.evaluate_all(SETTLE):
            return
        view.evaluate(
            "node => new Promise((done) => { node.scrollTop += 400; requestAnimationFrame(() => setTimeout(done)) })"
        )
    raise AssertionError(f"no turn has {text!r}")


def test_there_are_a_hundred_payloads() -> None:
    assert len(set(PAYLOADS)) >= 100


def test_hostile_answers_stay_text(server: RunningServer, key: str, tabs: Tabs) -> None:
    page = watch(tabs, f"{server.url}/#/c/{key}")
    for start in range(0, len(PAYLOADS), 24):
        scroll_to(page, PAYLOADS[start][:30])
        check_nothing_ran(page)
    tabs.check_width(page)


@pytest.mark.parametrize("screen", ["prompt", "library", "compaction", "rules", "settings"])
def test_hostile_names_and_texts_stay_text(server: RunningServer, key: str, tabs: Tabs, screen: str) -> None:
    page = watch(tabs, f"{server.url}/#/c/{key}/{screen}")
    expect(page.get_by_role("heading", level=1)).to_have_text(PAYLOADS[1])
    page.wait_for_load_state("networkidle")
    if screen == "prompt":
        page.get_by_role("button", name="onerror=hit(3)").first.click()
        expect(page.locator(".detail pre")).to_contain_text("<script>hit(0)</script>")
    if screen == "compaction":
        page.get_by_role("button", name="Plan it").click()
        expect(page.get_by_role("region", name="The plan")).to_be_visible()
    check_nothing_ran(page)
    tabs.check_width(page)


def test_hostile_tool_result_stays_text(server: RunningServer, key: str, tabs: Tabs) -> None:
    page = watch(tabs, f"{server.url}/#/c/{key}")
    scroll_to(page, "Read it.")
    tool = page.locator("details.tool").first
    tool.locator("summary").click()
    expect(tool.locator("pre").last).to_be_visible()
    expect(tool.locator("dd").first).to_contain_text("<img src=x onerror=hit(4)>.md")
    check_nothing_ran(page)


def test_hostile_memory_stays_text(server: RunningServer, key: str, tabs: Tabs) -> None:
    assert key
    page = watch(tabs, f"{server.url}/#/memory")
    expect(page.get_by_text("Likes <img src=x onerror=hit(7)>.", exact=True)).to_be_visible()
    check_nothing_ran(page)


# The texts below come from a model, from notes or from other programs, and are shown in the newest places of the page.

RTL, HIDDEN = "\u202e\u2066", "\u200b\u200d\ufeff\u2060\u00ad"
ANSI = "\x1b[31;1mred\x1b[0m\x9b2J\x07"
HOSTILE_NAMES = (
    "<img src=x onerror=hit(8)>",
    f"{RTL}dm.yek-terces",
    f"a{HIDDEN}b",
    "w" * 400,
    "\u0628\u0627\u062a \u0647\u0630\u0627",
    "\u0301" * 60,
    ANSI,
)


class HostileWriter(ScriptedProvider):
    """Wants to write a note with a hostile text, and names chats with hostile titles."""

    def __init__(self, path: str, content: str) -> None:
        super().__init__()
        self.call = ToolCall(id="w1", name="write_note", arguments=json.dumps({"path": path, "content": content}))

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        last = request.messages[-1]
        wants = last.role is Role.USER and "title" not in str(last.text)
        title = ScriptedReply(text=f"{TAGS[1].format(n=9)}{RTL}{ANSI}{'w' * 200}")
        done = ScriptedReply(text="Done.")
        self._replies.append(
            ScriptedReply(calls=(self.call,)) if wants else done if last.role is not Role.USER else title
        )
        async for delta in super().stream(request):
            yield delta


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_hostile_change_of_a_note_hides_nothing_and_runs_nothing(
    start: StartServer, tabs: Tabs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, phone: bool
) -> None:
    monkeypatch.setenv("LAMELLA_NOTE_BACKUPS", str(tmp_path / "backups"))
    (tmp_path / "vault").mkdir()
    content = "\n".join([*PAYLOADS, f"send {RTL}the key{HIDDEN} to {ANSI}", "w" * 4_000, ""])
    server = start(
        HostileWriter("plan <b onclick=hit(1)>.md".translate({60: 40, 62: 41}), content), vault=tmp_path / "vault"
    )
    page = watch(tabs, f"{server.url}/#/memory", phone=phone)
    made = server.client.post("/v1/conversations", json={"settings": {"runner": "agent"}}).json()
    page.goto(f"{server.url}/#/c/{made['conversation']}")
    field = page.get_by_label("Message", exact=True)
    field.fill("Write it down.")
    field.press("Enter")
    asked = page.get_by_role("region", name="The model wants to make the note")
    change = asked.locator("pre")
    for hidden in ("\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u2060", "\u00ad", "\x1b", "\x9b", "\x07"):
        expect(change).to_contain_text(f"\u27e8U+{ord(hidden):04X}\u27e9")
        assert hidden not in (change.text_content() or "")
    expect(change).to_contain_text("<script>hit(0)</script>")
    check_nothing_ran(page)
    tabs.check_width(page)
    asked.get_by_role("button", name="Yes, write it").click()
    expect(page.locator(".answer")).to_contain_text("Done.")
    # The title that the model wrote: one line, without what turns or hides text.
    expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x")
    expect(page).to_have_title(re.compile("^<img src=x"))
    for text in (page.get_by_role("heading", level=1).text_content(), page.title()):
        assert not set(text or "") & set(RTL + ANSI[:1])
    check_nothing_ran(page)
    tabs.check_width(page)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_hostile_names_stay_text_in_chips_lists_dialogs_and_tooltips(
    start: StartServer, tabs: Tabs, *, phone: bool
) -> None:
    server = start(ScriptedProvider(*["Yes."] * 20))
    keys = [server.begin(f"named-{number}", title=name) for number, name in enumerate(HOSTILE_NAMES)]
    notes = [
        {"kind": "note", "path": f"{number}.md", "title": name, "text": name}
        for number, name in enumerate(HOSTILE_NAMES)
    ]
    for key in keys:
        server.ask(key, HOSTILE_NAMES[keys.index(key)], attach=notes)
        server.client.post(
            f"/v1/conversations/{key}/attachments",
            json={"attach": [{**one, "path": f"new-{one['path']}"} for one in notes]},
        )
        server.client.post(f"/v1/conversations/{key}/rules", json={"text": f"Always {HOSTILE_NAMES[0]} first."})
    page = watch(tabs, f"{server.url}/#/c/{keys[0]}", phone=phone)
    expect(page.get_by_role("list", name="Attached to the next message").get_by_role("listitem")).to_have_count(
        len(notes)
    )
    check_nothing_ran(page)
    tabs.check_width(page)
    for key in keys:
        for screen in ("", "/prompt", "/library", "/compaction", "/rules", "/settings"):
            page.goto(f"{server.url}/#/c/{key}{screen}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            page.wait_for_load_state("networkidle")
            check_nothing_ran(page)
            tabs.check_width(page)
        if not phone:
            page.get_by_role("button", name="Delete the chat").click()
            expect(page.get_by_role("alertdialog")).to_be_visible()
            check_nothing_ran(page)
            page.get_by_role("button", name="Keep it").click()
    # The titles of the list are cut off, and none reaches into the next one.
    if phone:
        page.get_by_role("button", name="List of chats").click()
    links = page.get_by_role("navigation", name="Chats").locator("li a")
    expect(links).to_have_count(len(keys))
    heights = links.evaluate_all("nodes => nodes.map((node) => node.getBoundingClientRect().height)")
    assert max(heights) < 45
    assert page.get_by_role("navigation", name="Chats").evaluate("node => node.scrollWidth <= node.clientWidth")
    tabs.check_width(page)
