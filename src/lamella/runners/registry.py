"""The registry of runners, by the name that users choose them by."""

from collections.abc import Mapping

from lamella.conversation.runner_context import Runner
from lamella.runners.agent import run_agent, run_chat, run_staged
from lamella.runners.plus import run_plus
from lamella.runners.project import run_project
from lamella.runners.vault_qa import run_vault_qa

RUNNERS: Mapping[str, Runner] = {
    "chat": run_chat,
    "agent": run_agent,
    "plus": run_plus,
    "project": run_project,
    "staged": run_staged,
    "vault_qa": run_vault_qa,
}
# Runners that call no tools except those of the caller. The CLI asks for no consent to MCP servers before they run.
RUNNERS_WITHOUT_TOOLS = frozenset({"chat", "vault_qa"})
