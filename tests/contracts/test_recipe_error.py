"""The recipe for an error, followed in a copy of the source."""

from pathlib import Path

from tests.contracts.recipes import SourceCopy

CLASS = '''class TideError(BadInputError):
    """The tide is too low."""

    code = "low_tide"

    def __init__(self, metres: float) -> None:
        super().__init__(
            f"The tide is {metres} m high.",
            hint=lambda hints: f"Wait for the tide. {hints.list_chats_hint()} lists conversations.",
        )


'''
RAISED = """
from lamella.cli.errors import CliHints, exit_code, failure_to_json
from lamella.errors import LamellaError, TideError
from lamella.server.errors import error_status_and_body

try:
    raise TideError(0.4)
except LamellaError as error:
    print(error.message, error.hint)
    print(exit_code(error), failure_to_json(error, CliHints()).error.hint)
    status, body = error_status_and_body(error)
    print(status, body["error"]["code"], body["error"]["hint"])
"""


def test_error_recipe_gives_an_error_with_hints_for_every_interface(tmp_path: Path) -> None:
    copy = SourceCopy(tmp_path)
    copy.insert("errors.py", CLASS, before="class UsageError(")
    python, command, http = copy.run(RAISED).splitlines()
    assert python == "The tide is 0.4 m high. Wait for the tide. `engine.chats()` lists conversations."
    assert command.startswith("2 Wait for the tide. ")
    assert "lamella chats list" in command
    assert http == "400 low_tide Wait for the tide. `GET /v1/conversations` lists conversations."
    copy.check("Add an error")
