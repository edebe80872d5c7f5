"""``cli.errors``: hints of the command line and of a chat, exit codes, and how a failure is printed."""

import json

import pytest

from lamella.cli.errors import CliHints, SlashCommandHints, exit_code, print_failure
from lamella.errors import BadInputError, LamellaError, NotFoundError, ProviderError, UsageError
from lamella.hints import Hints

STORE = "postgresql://me:secret@db/x"
CLI = {
    "option": ("--max-tokens", "--max-tokens"),
    "model": ("--model", "/model"),
    "create": ("`lamella chat` or `lamella chats import FILE`",) * 2,
    "verify": ("`lamella store verify`",) * 2,
    "repair": ("`lamella store verify --repair`",) * 2,
    "list": ("`lamella chats list`",) * 2,
    "show": ("`lamella chats show garden --branch 1f`", "`lamella chats show garden --branch 1f`"),
    "switch": ("`lamella chats fork garden 1f`", "`/switch 1f`"),
    "trust": ("run `lamella trust add model http://x`",) * 2,
    "reload": ("Run the command again.", "The conversation was loaded again; repeat your last input."),
    "resend": ("`--max-tokens 9`", "`/retry` after you reopen the chat with `--max-tokens 9`"),
    "finish": ("The program that has these tools can continue.",) * 2,
    "workflow": ("`lamella workflow paper new`", "`/stage new paper`"),
    "replay": ("`lamella replay FILE`",) * 2,
}


def read_hints(hints: Hints) -> dict[str, str]:
    return {
        "option": hints.option_hint("max_tokens"),
        "model": hints.option_hint("model"),
        "create": hints.create_store_hint(),
        "verify": hints.verify_store_hint(),
        "repair": hints.repair_store_hint(),
        "list": hints.list_chats_hint(),
        "show": hints.show_chat_hint("garden", "1f"),
        "switch": hints.switch_branch_hint("garden", "1f"),
        "trust": hints.trust_hint("model", "m", "http://x"),
        "reload": hints.write_conflict_hint(),
        "resend": hints.send_with_limit_hint(max_tokens=9),
        "finish": hints.finish_calls_hint(["search"]),
        "workflow": hints.start_workflow_hint(),
        "replay": hints.replay_transcript_hint(),
    }


@pytest.mark.parametrize(("number", "hints"), [(0, CliHints()), (1, SlashCommandHints())])
def test_hint_is_a_command_of_its_interface(number: int, hints: Hints) -> None:
    assert read_hints(hints) == {name: texts[number] for name, texts in CLI.items()}


def test_hint_names_the_store_without_its_password() -> None:
    hint = CliHints(STORE).list_chats_hint()
    assert hint.startswith("`lamella chats list --store ")
    assert "secret" not in hint
    assert "db/x" in hint


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x", hint="y"), 2),
        (BadInputError("x", hint="y"), 2),
        (NotFoundError("x", hint="y"), 2),
        (LamellaError("x", hint="y"), 1),
        (ProviderError("x", hint="y"), 1),
    ],
)
def test_exit_code_says_whether_the_caller_is_at_fault(error: LamellaError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize("as_json", [True, False])
def test_failure_is_printed_on_lines_of_its_own(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> None:
    error = UsageError("Bad\x1b name.", hint=lambda hints: f"See {hints.list_chats_hint()}")
    print_failure(error, CliHints(), as_json=as_json)
    printed = capsys.readouterr()
    assert printed.err == "error: Bad\\x1b name.\nhint: See `lamella chats list`\n"
    body = {"code": "bad_usage", "message": "Bad\\x1b name.", "hint": "See `lamella chats list`"}
    assert (json.loads(printed.out) if printed.out else None) == ({"lamella": 1, "error": body} if as_json else None)
