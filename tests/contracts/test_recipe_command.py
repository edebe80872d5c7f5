"""The recipe for a command, followed in a copy of the source."""

import json
import re
from pathlib import Path

from tests.contracts.recipes import SourceCopy

BODY = '''"""JSON body of the number of words in a text."""

from collections import Counter

from lamella.schemas.body import VersionedBody


class TallyJson(VersionedBody, frozen=True, kw_only=True):
    """How often each word occurs."""

    words: dict[str, int]


def tally_to_json(text: str) -> TallyJson:
    """Return how often each word occurs."""
    return TallyJson(words=dict(Counter(text.split())))
'''
COMMAND = '''"""``lamella tally``: count words."""

from typing import Annotated

import typer

from lamella.cli.access import JsonOption
from lamella.cli.output import print_result
from lamella.errors import UsageError
from lamella.schemas.tally import tally_to_json


def tally(*, text: Annotated[str, typer.Argument(help="A text.")], as_json: JsonOption = False) -> None:
    """Count the words of a text."""
    if not text.strip():
        raise UsageError("The text has no words.", hint="Pass at least one word.")
    body = tally_to_json(text)
    print_result("\\n".join(f"{word} {n}" for word, n in body.words.items()), body, as_json=as_json)
'''


def test_command_recipe_gives_a_command_with_json_errors_and_help(tmp_path: Path) -> None:
    copy = SourceCopy(tmp_path)
    copy.create("schemas/tally.py", BODY)
    copy.create("cli/tally.py", COMMAND)
    app = (copy.package / "cli" / "app.py").read_text(encoding="utf-8")
    (row,) = re.findall(r'^    "recall": .*\n', app, re.MULTILINE)
    copy.insert("cli/app.py", row.replace("recall", "tally"), before=row.rstrip("\n"))
    printed = copy.command("tally", "to be or to be")
    assert (printed.returncode, printed.stdout, printed.stderr) == (0, "to 2\nbe 2\nor 1\n", "")
    assert json.loads(copy.command("tally", "so so", "--json").stdout) == {"lamella": 1, "words": {"so": 2}}
    failed = copy.command("tally", " ", "--json")
    assert (failed.returncode, failed.stderr) == (2, "error: The text has no words.\nhint: Pass at least one word.\n")
    assert json.loads(failed.stdout)["error"]["code"] == "bad_usage"
    assert re.search(r"tally +Count the words of a text\.", copy.command("--help").stdout)
    copy.check("Add a command", name="tally")
