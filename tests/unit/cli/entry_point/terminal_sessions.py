"""Commands at a terminal: what is typed when a text appears. The screens at the end are recorded beside the sessions.

``python -m tests.unit.cli.entry_point.terminal_sessions`` runs the commands again and writes the screens again.
"""

import json
from pathlib import Path
from typing import NamedTuple

from tests.unit.cli.entry_point.sessions import open_session_folder, replace_varying
from tests.unit.cli.screen import ALT_ENTER, CTRL_C, CTRL_D, ENTER, run_at_terminal

FOLDER = Path(__file__).with_name("recorded_screens")
_MARKDOWN = (
    "# Beds\n\nTwo **beds** and [a link](https://example.org/x):\n\n- beans\n- <b>peas</b>\n\n```python\nx = 1\n```\n\n"
    "| bed | size |\n|---|---|\n| north | 2 m |\n\nDone."
)
_CHANGE = {
    "text": "I change it.",
    "calls": [{"name": "edit_note", "arguments": {"path": "beds.md", "old": "Peas.", "new": "Beans."}, "id": "1"}],
}
_WRITE = {
    "calls": [{"name": "write_note", "arguments": {"path": "new.md", "content": "# New\nBeets.\n"}, "id": "2"}],
}
_REMEMBER = {"calls": [{"name": "remember", "arguments": {"fact": "Likes peas."}, "id": "3"}]}
_SCRIPTS: dict[str, list[object]] = {
    "markdown.json": [_MARKDOWN, {"text": "Garlic.", "reasoning": "Hm.", "chunk": 3}, "Compost.", "Yes.", "No."],
    "changes.json": [_CHANGE, "Changed.", _WRITE, "Not written.", _REMEMBER, "Saved."],
    "fix.json": ["beds.py\n<<<<<<< SEARCH\nBEDS = 2\n=======\nBEDS = 3\n>>>>>>> REPLACE\n"] * 2,
}
_CHAT = "chat garden --vault vault --model scripted:"


class Session(NamedTuple):
    """A command, and its steps: a text to wait for and keys to press then."""

    words: str
    steps: tuple[tuple[str, str], ...] = ()
    columns: int = 100


def _typed(*lines: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Steps of a chat: each line is sent after the text before it, and Ctrl-D after the last text."""
    return tuple((text, line + ENTER if line else CTRL_D) for text, line in lines)


SESSIONS: dict[str, tuple[Session, ...]] = {
    "editor": (
        Session(
            _CHAT + "markdown.json",
            (
                ("commands.", "What grows?" + ENTER),
                ("Done", "And" + ALT_ENTER + "now,\\" + ENTER + "really?" + ENTER),
                ("Garlic.", "/copy" + ENTER),
                ("Copied", CTRL_C),
                ("leave", CTRL_D),
            ),
        ),
        Session(
            _CHAT + "markdown.json",
            _typed(
                ("now,", "/set nothing 1"),
                ("docs/reference/settings.md.", "/paste"),
                ("hint", "/attach project-spec.md"),
                ("is attached", "/retry"),
                ("Done", "/resume"),
                ("hint", "/nothing"),
                ("hint", "/quit"),
            ),
        ),
    ),
    "questions": (
        Session(
            _CHAT + "changes.json --runner agent",
            (
                ("commands.", "Change the beds." + ENTER),
                ("[y/N]: ", "maybe" + ENTER),
                ("[y/N]: ", "y" + ENTER),
                ("Changed.", "Write a new one." + ENTER),
                ("[y/N]: ", "n" + ENTER),
                ("Not written.", "Remember that." + ENTER),
                ("[y/N]: ", "YES" + ENTER),
                ("Saved.", CTRL_D),
            ),
        ),
        Session("chats delete garden", (("[y/N]: ", "n" + ENTER),)),
        Session("chats delete garden", (("[y/N]: ", "y" + ENTER),)),
        Session("chats list"),
        Session("code fix beds.py --vault code --say Fix --model scripted:fix.json", (("[y/N]: ", "n" + ENTER),)),
        Session("code fix beds.py --vault code --say Fix --model scripted:fix.json", (("[y/N]: ", "y" + ENTER),)),
        Session("restore --vault code"),
    ),
    "trust": (
        Session("config set model openai-compatible:http://127.0.0.1:9/v1#m --project", columns=200),
        Session("ask Hi", (("[y/N]: ", "n" + ENTER),), columns=200),
        Session("config unset model --project", columns=200),
        Session("config set store sqlite:///elsewhere.db --project", columns=200),
        Session("chats list", (("[y/N]: ", "y" + ENTER),), columns=200),
        Session("chats list", columns=200),
        Session("trust list"),
    ),
    "tables": (
        Session("chats list"),
        Session("ledger nothing"),
        Session("tools --vault vault"),
        Session("search decided --vault vault"),
        Session("code select vault --question When --budget 500 --explain"),
        Session("replay rounds.json"),
    ),
}


def run_terminal_session(name: str) -> str:
    """The screens of a session's commands, with ids, times and folders replaced."""
    shown: list[str] = []
    with open_session_folder() as folder:
        (folder / "vault" / "beds.md").write_text("# Beds\nPeas.\n", encoding="utf-8")
        for file, script in _SCRIPTS.items():
            (folder / file).write_text(json.dumps(script), encoding="utf-8")
        for session in SESSIONS[name]:
            run = run_at_terminal(session.words.split(), *session.steps, columns=session.columns)
            lines = "".join(f"{line.rstrip()}\n" for line in replace_varying(run.screen, folder).splitlines())
            shown.append(f"$ lamella {session.words}\n{lines}[{run.code}]\n")
    return "\n".join(shown)


def record() -> None:
    """Write the screens as they are now."""
    FOLDER.mkdir(exist_ok=True)
    for name in SESSIONS:
        (FOLDER / f"{name}.txt").write_text(run_terminal_session(name), encoding="utf-8")


if __name__ == "__main__":
    record()
