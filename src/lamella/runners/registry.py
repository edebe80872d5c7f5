"""The registry of runners: one row per way of answering, by the name that people choose it by."""

from collections.abc import Mapping

from lamella.engine.sending.job import Runner
from lamella.runners.agent import run_agent
from lamella.runners.chat import run_chat
from lamella.runners.plus import run_plus
from lamella.runners.project import run_project
from lamella.runners.staged import run_staged
from lamella.runners.vault_qa import run_vault_qa

RUNNERS: Mapping[str, Runner] = {
    "chat": run_chat,
    "agent": run_agent,
    "plus": run_plus,
    "project": run_project,
    "staged": run_staged,
    "vault_qa": run_vault_qa,
}
# Those that call no tools but what a caller gives: servers of tools are nothing to them.
WITHOUT_TOOLS = frozenset({"chat", "vault_qa"})
