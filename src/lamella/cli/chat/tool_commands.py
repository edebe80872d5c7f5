"""``/tools``: show the tools that the model may call, and list those of MCP servers again."""

from lamella.cli.chat.input import match_prefix
from lamella.cli.chat.session import ChatSession
from lamella.cli.output import escape_line, print_text
from lamella.errors import UsageError
from lamella.schemas.formatting import truncate_words

_MAX_DESCRIPTION_LENGTH = 70


def complete_tools_action(_session: ChatSession, prefix: str) -> dict[str, str]:
    """Return completions for ``/tools``."""
    return match_prefix({"refresh": "load the tools of MCP servers again"}, prefix)


def show_tools(session: ChatSession, rest: str) -> None:
    """Print every tool; with ``refresh``, list the tools of MCP servers again with the next message."""
    if rest not in ("", "refresh"):
        raise UsageError(f"Unknown /tools action: {rest}", hint="Use refresh; /tools alone lists the tools.")
    opened = session.opened_conversation
    context, servers = opened.opener.runner_context, opened.opener.runner_context.mcp_servers
    if rest and servers is not None:
        servers.refresh()
        print_text("The next message that uses tools sends the new list.")
        return
    opened.confirm_mcp_servers()
    theirs = () if servers is None else servers.tools()
    for tool in (*context.make_tools(opened.conversation_log), *theirs):
        print_text(
            f"{tool.name}  {escape_line(truncate_words(tool.description.partition(chr(10))[0], _MAX_DESCRIPTION_LENGTH))}"
        )
