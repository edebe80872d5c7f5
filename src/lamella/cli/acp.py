"""``lamella acp``: the agent of an editor that speaks the Agent Client Protocol."""

import asyncio
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO

from lamella.cli.access import StoreOption
from lamella.cli.chat.setting_commands import parse_setting_options
from lamella.cli.errors import SlashCommandHints
from lamella.cli.interrupts import cancel_on_signals
from lamella.cli.options import ModelOption, RunnerOption, SettingOption, SystemOption
from lamella.cli.output import is_terminal
from lamella.errors import ExtraNotInstalledError, UsageError, install_hint
from lamella.wiring import read_services

if TYPE_CHECKING:
    from lamella.integrations.acp.agent import FolderEngines
    from lamella.integrations.acp.session import SlashCommandSet


def acp(
    *,
    model: ModelOption = None,
    runner: RunnerOption = None,
    system: SystemOption = None,
    settings: SettingOption = None,
    store: StoreOption = None,
) -> None:
    """Answer in an editor that speaks the Agent Client Protocol (ACP).

    The editor starts this command and talks to it over stdin and stdout. The folder that is open in the editor is the
    vault. The options apply to new conversations. docs/how-to/editors.md has the settings of several editors.
    """
    try:
        from lamella.integrations.acp.agent import FolderEngines
        from lamella.integrations.acp.session import SlashCommandSet
        from lamella.integrations.acp.stdio import claim_stdio
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "acp":
            raise
        raise ExtraNotInstalledError(
            "The agent for editors needs agent-client-protocol, which is not installed.", hint=install_hint("acp")
        ) from error
    if is_terminal(sys.stdin):
        raise UsageError(
            "An editor starts this command and writes to its stdin, which is a terminal here.",
            hint="Name `lamella acp` in the settings of your editor, or talk here with `lamella chat`.",
        )
    given = parse_setting_options(system, settings, runner=runner)
    with claim_stdio() as streams:
        engines = FolderEngines(read_services(), store=store, model=model)
        commands = SlashCommandSet(hints=SlashCommandHints(store))
        asyncio.run(_serve_editor(engines, streams, settings=given, commands=commands))


async def _serve_editor(
    engines: "FolderEngines",
    streams: tuple[BinaryIO, BinaryIO],
    *,
    settings: Mapping[str, object],
    commands: "SlashCommandSet",
) -> None:
    from lamella.integrations.acp.agent import run_acp_agent

    with cancel_on_signals():
        await run_acp_agent(engines, streams, settings=settings, commands=commands)
