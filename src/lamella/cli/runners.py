"""``lamella runners``: list the runners."""

from lamella.cli.access import JsonOption
from lamella.cli.output import print_json, print_text
from lamella.cli.tables import format_runner
from lamella.conversation.runner_context import list_runners
from lamella.runners.registry import RUNNERS
from lamella.schemas.catalog import runners_to_json
from lamella.wiring import load_settings


def runners(*, as_json: JsonOption = False) -> None:
    """List runners, the ways to answer a message. * marks the default.

    lamella runners
    """
    usual, known = load_settings().runner, list_runners(RUNNERS)
    if as_json:
        print_json(runners_to_json(known, default=usual))
        return
    for name, does in known.items():
        print_text(format_runner(name, does, is_current=name == usual))
