"""The tools that a model may call in a chat: shown, and those of servers listed anew when somebody says so."""

from lamella.errors import UsageError
from lamella.faces.cli.chat.input import choose_begun
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell
from lamella.views.words import cut_words

_GLANCE = 70


def list_deeds(_talk: TerminalChat, begun: str) -> dict[str, str]:
    """What may come after it."""
    return choose_begun({"refresh": "have servers list theirs anew"}, begun)


def show_tools(talk: TerminalChat, rest: str) -> None:
    """Every tool by its name; with ``refresh``, servers are started anew and say what they have now."""
    if rest not in ("", "refresh"):
        raise UsageError(f"/tools does not know {rest}.", hint="It knows refresh; or nothing, to show them.")
    opened = talk.opened
    place, servers = opened.opener.place, opened.opener.place.servers
    if rest and servers is not None:
        servers.refresh()
        tell("What servers have now goes with the next message that tools are used for.")
        return
    opened.agree()
    theirs = () if servers is None else servers.tools()
    for tool in (*place.make_tools(opened.stored), *theirs):
        tell(f"{tool.name}  {show_line(cut_words(tool.description.partition(chr(10))[0], _GLANCE))}")
