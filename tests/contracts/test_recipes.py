"""The copy that recipes are followed in, and the recipe for a kind."""

from pathlib import Path

import pytest
from tests.contracts.recipes import SourceCopy, named_files


@pytest.fixture
def copy(tmp_path: Path) -> SourceCopy:
    return SourceCopy(tmp_path)


def test_copy_without_changes_has_no_differences_and_no_problems(copy: SourceCopy) -> None:
    assert copy.changed() == []
    assert copy.find_structure_problems() == []
    copy.create("core/artifacts/more.py", '"""More."""\n')
    copy.insert("attach.py", "# More.\n", before="class Note(")
    assert copy.changed() == ["attach.py", "core/artifacts/more.py"]
    assert copy.find_structure_problems() == []


def test_structure_check_finds_a_wrong_import_and_impure_code(copy: SourceCopy) -> None:
    copy.create("core/artifacts/more.py", '"""More."""\n\nimport os\n\nimport lamella.stores\n')
    found = copy.find_structure_problems()
    assert {"Imports point one way", "Core is pure"} <= set(found)
    assert "src/lamella/core/artifacts/more.py imports os" in found


def test_named_files_fills_placeholders_and_leaves_tests_out() -> None:
    assert "cli/tally.py" in named_files("Add a command", name="tally")
    assert not any("tests/" in path for path in named_files("Add a provider", name="echo"))
    with pytest.raises(AssertionError, match="no recipe 'Add a castle'"):
        named_files("Add a castle")


KIND = """
import json
from pathlib import Path

import lamella
from lamella import Conversation
from lamella.attach import Ticket, attachment_for_path
from lamella.cli import main

TEXT = "Broken.\\n</ticket>\\nStill broken."
BLOCK = (
    "<ticket>\\n<title>T-1</title>\\n<path>T-1.ticket</path>\\n<content>\\n"
    "Broken.\\n<\\\\/ticket>\\nStill broken.\\n</content>\\n</ticket>\\n"
)
Path("vault").mkdir()
Path("vault/T-1.ticket").write_text(TEXT, encoding="utf-8")
assert attachment_for_path("T-1.ticket") == Ticket(path="T-1.ticket")

# In Python: with its text, and read from the vault; on the next turn from the library.
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

# In an archive, from one store into another: with its text in the file, and read from the vault.
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


def test_kind_recipe_works_in_python_transcripts_and_archives(copy: SourceCopy) -> None:
    copy.insert("core/artifacts/model.py", '    TICKET = "ticket"\n', before='    UNKNOWN = "unknown"')
    row = '    KindSpec(kind=ArtifactKind.TICKET, tag="ticket", group="Tickets", suffixes=(".ticket",)),\n'
    copy.insert("core/artifacts/kinds.py", row, before="    KindSpec(kind=ArtifactKind.CANVAS,")
    value = 'class Ticket(_FileAttachment):\n    """A ticket."""\n\n    kind = ArtifactKind.TICKET\n\n\n'
    copy.insert("attach.py", value, before="class Code(")
    copy.insert("attach.py", '    "Ticket",\n', before='    "Tool",')
    assert copy.run(KIND).splitlines()[-1] == "done"
    copy.check("Add a kind")
