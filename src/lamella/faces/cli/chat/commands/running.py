"""Commands of a chat about how questions are answered: by which runner, and on from where one was left."""

from lamella.engine.sending.job import list_runners
from lamella.faces.cli.chat.input import choose_begun
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.tables.runners import tell_runner
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell
from lamella.runners.registry import RUNNERS


def choose_runner(talk: TerminalChat, rest: str) -> None:
    """Show the ways of answering, or choose one from the next message on."""
    if rest:
        talk.stored.set({"runner": rest})
        talk.stored.keep()
        tell(f"{show_line(rest)} answers from the next message on.")
        return
    for name, does in list_runners(RUNNERS).items():
        tell(tell_runner(name, does, chosen=name == talk.stored.runner))


def list_known_runners(_talk: TerminalChat, begun: str) -> dict[str, str]:
    """The runners, each with what it does."""
    return choose_begun(list_runners(RUNNERS), begun)


def resume(talk: TerminalChat, _rest: str) -> None:
    """Go on with the question that was left without an answer."""
    talk.go_on()
