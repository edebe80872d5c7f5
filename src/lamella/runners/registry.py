"""The registry of runners, by the name that users choose them by."""

from collections.abc import Iterator, Mapping

from lamella.conversation.runner_context import Runner
from lamella.plugins import PluginGroup, find_plugins
from lamella.runners.agent import run_agent, run_chat, run_staged
from lamella.runners.plus import run_plus
from lamella.runners.project import run_project
from lamella.runners.vault_qa import run_vault_qa

BUILT_IN_RUNNERS: Mapping[str, Runner] = {
    "chat": run_chat,
    "agent": run_agent,
    "plus": run_plus,
    "project": run_project,
    "staged": run_staged,
    "vault_qa": run_vault_qa,
}


class _RunnerRegistry(Mapping[str, Runner]):
    """The built-in runners, followed by those of plugins, which are looked up when somebody asks."""

    def __getitem__(self, name: str) -> Runner:
        if name in BUILT_IN_RUNNERS:
            return BUILT_IN_RUNNERS[name]
        plugin: Runner = find_plugins(PluginGroup.RUNNERS)[name]
        return plugin

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN_RUNNERS
        yield from (name for name in find_plugins(PluginGroup.RUNNERS) if name not in BUILT_IN_RUNNERS)

    def __len__(self) -> int:
        return sum(1 for _ in self)


RUNNERS: Mapping[str, Runner] = _RunnerRegistry()
# Runners that call no tools except those of the caller. The CLI asks for no consent to MCP servers before they run.
RUNNERS_WITHOUT_TOOLS = frozenset({"chat", "vault_qa"})
