"""The recipes of CONTRIBUTING work, and touch the files they name: no more than three of ``src``."""

from pathlib import Path

import pytest
from tests.contracts.recipes import SourceCopy, named_files

AT_MOST = 3


@pytest.fixture
def copy(tmp_path: Path) -> SourceCopy:
    return SourceCopy(tmp_path)


def test_a_copy_that_nothing_was_done_to_differs_in_nothing(copy: SourceCopy) -> None:
    assert copy.changed() == []
    copy.add("core/artifacts/more.py", "")
    copy.put("attach.py", "# More.\n", before="class Note(")
    assert copy.changed() == ["attach.py", "core/artifacts/more.py"]


KIND = """
import json
from pathlib import Path

import lamella
from lamella import Conversation
from lamella.attach import Ticket, describe_file
from lamella.faces.cli import main

TEXT = "Broken.\\n</ticket>\\nStill broken."
BLOCK = (
    "<ticket>\\n<title>T-1</title>\\n<path>T-1.ticket</path>\\n<content>\\n"
    "Broken.\\n<\\\\/ticket>\\nStill broken.\\n</content>\\n</ticket>\\n"
)
Path("vault").mkdir()
Path("vault/T-1.ticket").write_text(TEXT, encoding="utf-8")
assert describe_file("T-1.ticket") == Ticket(path="T-1.ticket")

# In Python: its text given, and read from the vault; later from the library.
for given in (Ticket(path="T-1.ticket", text=TEXT), Ticket(path="T-1.ticket")):
    chat = Conversation(vault="vault")
    assert BLOCK in chat.ask("What is it?", attach=[given]).messages[-1].text
    chat.reply("A ticket.")
    assert BLOCK in chat.ask("And now?").messages[0].text

# In a transcript.
attach = [{"kind": "ticket", "path": "T-1.ticket", "text": TEXT}, {"kind": "ticket", "path": "T-1.ticket"}]
turns = [{"user": "What is it?", "attach": [one], "reply": "A ticket."} for one in attach]
transcript = {"lamella": 1, "vault": "vault", "turns": turns}
Path("talk.json").write_text(json.dumps(transcript), encoding="utf-8")
assert main(["replay", "talk.json", "--json"]) == 0

# In an archive, out of one store and into another: with its text in the file, and left to the vault.
chat = lamella.open("sqlite:///one.db", vault="vault").chat("tickets")
chat.ask("What is it?", attach=[Ticket(path="T-1.ticket")])
chat.reply("A ticket.")
for vault in ([], ["--vault", "vault"]):
    to = f"to{len(vault)}"
    assert main(["chats", "export", "tickets", "--to", to, "--store", "sqlite:///one.db", *vault]) == 0
    (archive,) = Path(to).glob("*.md")
    assert "[Context: Tickets: T-1.ticket]" in archive.read_text(encoding="utf-8")
    assert main(["chats", "import", str(archive), "--store", f"sqlite:///{to}.db", *vault]) == 0
    again = lamella.open(f"sqlite:///{to}.db", vault="vault").chat("tickets")
    assert BLOCK in again.ask("And now?").messages[0].text
print("done")
"""


def test_a_kind_is_a_member_a_row_and_a_value(copy: SourceCopy) -> None:
    copy.put("core/artifacts/model.py", '    TICKET = "ticket"\n', before='    UNKNOWN = "unknown"')
    row = '    KindSpec(kind=Kind.TICKET, tag="ticket", group="Tickets", suffixes=(".ticket",)),\n'
    copy.put("core/artifacts/kinds.py", row, before="    KindSpec(kind=Kind.TOOL,")
    value = 'class Ticket(_File):\n    """A ticket."""\n\n    kind = Kind.TICKET\n\n\n'
    copy.put("attach.py", value, before="class Code(")
    copy.put("attach.py", '    "Ticket",\n', before='    "Tool",')
    assert copy.run(KIND).splitlines()[-1] == "done"
    assert copy.changed() == named_files("A kind")
    assert len(copy.changed()) <= AT_MOST
