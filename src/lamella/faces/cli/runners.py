"""``lamella runners``: the ways of answering."""

from lamella.engine.sending.job import list_runners
from lamella.faces.cli.access import JsonOption
from lamella.faces.cli.tables.runners import tell_runner
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.runners.registry import RUNNERS
from lamella.views.answers import view_runners
from lamella.wiring import load_settings


def runners(*, as_json: JsonOption = False) -> None:
    """The ways of answering that --runner, /runner and the setting `runner` choose from; * is the one that is set.

    lamella runners
    """
    usual, known = load_settings().runner, list_runners(RUNNERS)
    if as_json:
        tell_json(view_runners(known, usual=usual))
        return
    for name, does in known.items():
        tell(tell_runner(name, does, chosen=name == usual))
