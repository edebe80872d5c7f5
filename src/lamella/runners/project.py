"""The ``project`` runner: a chat about a folder, with its list of sources, its instructions and its memory.

``run_project`` is the runner. ``render_project_system_part`` renders the project part of L1, and ``describe_source_changes`` the
note about sources that changed later, so that L1 and the cached prefix stay unchanged.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath

from lamella.conversation.conversation import Conversation
from lamella.conversation.runner_context import RunRequest, execute_run
from lamella.conversation.turn_runner import TurnEvent
from lamella.core.artifacts.blocks import escape_block_text
from lamella.core.artifacts.kinds import make_tool_result
from lamella.core.messages import PROJECT_INTRO
from lamella.core.text.content import escape_line
from lamella.core.values import replace
from lamella.ports import ProjectFolder
from lamella.runners.tool_rounds import collect_tools, list_offered_tools, with_system_parts_and_tools
from lamella.runners.write_blocks import with_write_blocks

# How many sources the manifest lists. It only counts the rest.
MAX_LISTED_SOURCES = 100
# How many paths a note of changes names per category (new or changed, gone).
_MAX_NAMED_PATHS = 20
_LIST_PREFIX = "- "


def render_project_system_part(folder: ProjectFolder) -> str:
    """Return the project part of L1: the project's own instructions and memory, then its sources by path."""
    return f"{render_project_header(folder)}\n\n{_render_sources(list(folder.source_mtimes))}"


def render_project_header(folder: ProjectFolder) -> str:
    """Return the project part of L1 without the list of sources."""
    parts = [f"{PROJECT_INTRO}{escape_line(folder.name)}, a folder of notes and files."]
    if folder.instructions:
        parts.append(_wrap_in_tag("project_instructions", folder.instructions))
    if folder.memory:
        parts.append(_wrap_in_tag("project_memory", folder.memory))
    return "\n\n".join(parts)


def _wrap_in_tag(tag: str, text: str) -> str:
    """Wrap a file's text in a tag; ``escape_block_text`` keeps the text from closing that tag itself."""
    return f"<{tag}>\n{escape_block_text(text)}\n</{tag}>"


def _render_sources(paths: Sequence[str]) -> str:
    if not paths:
        return "It has no sources yet."
    left = len(paths) - MAX_LISTED_SOURCES
    lines = [f"{_LIST_PREFIX}{escape_line(path)}" for path in paths[:MAX_LISTED_SOURCES]]
    more = [f"and {left:,} more, which are not listed"] if left > 0 else []
    return "\n".join(["Its sources, by path; what they say is not here:", *lines, *more])


def describe_source_changes(earlier_part: str, folder: ProjectFolder, *, since: float) -> str:
    """Describe which sources changed after ``since``, compared with the L1 part ``earlier_part``; empty if none did.

    ``earlier_part`` lists at most ``MAX_LISTED_SOURCES`` sources, so removed sources beyond that list are not noticed.
    """
    late = [path for path, at in folder.source_mtimes.items() if at > since]
    present = {f"{_LIST_PREFIX}{escape_line(path)}" for path in folder.source_mtimes}
    listed = earlier_part.removeprefix(render_project_header(folder)).splitlines()
    left = [line.removeprefix(_LIST_PREFIX) for line in listed if line.startswith(_LIST_PREFIX) and line not in present]
    # A source that is listed but missing was removed after ``since`` only if the folder around it changed after it.
    removed = [path for path in left if _folder_modified_time(path, folder) > since]
    lines = [
        f"{word}: {_folder_label(paths)}." for word, paths in (("New or changed", late), ("Gone", removed)) if paths
    ]
    return " ".join(("Sources of the project changed since the last question.", *lines)) if lines else ""


def _folder_modified_time(path: str, folder: ProjectFolder) -> float:
    """Return the modification time of the nearest parent folder that still exists, or 0.0.

    A folder's modification time changes when a file is added to it or removed from it.
    """
    above = (str(parent) for parent in PurePosixPath(path).parents)
    return next((folder.folders[parent] for parent in above if parent in folder.folders), 0.0)


def _folder_label(paths: Sequence[str]) -> str:
    named = [escape_line(path) for path in paths[:_MAX_NAMED_PATHS]]
    left = len(paths) - _MAX_NAMED_PATHS
    return ", ".join([*named, f"and {left:,} more"] if left > 0 else named)


# The runner.

_NO_PROJECT_WARNING = "There is no project here: name its folder as the vault."


async def run_project(run_request: RunRequest) -> AsyncGenerator[TurnEvent, None]:
    """Chat about a folder, with its own instructions and memory, a list of its sources, and what changed in it."""
    tools = None
    if run_request.runner_context.supports_tools(run_request.send_context.model):
        run_request, tools = await collect_tools(run_request)
    tool_list = None if tools is None else list_offered_tools(run_request, tools)
    if run_request.turn_request is not None:
        # Listing the whole folder takes time, so a worker thread does it and the event loop stays free.
        run_request = with_system_parts_and_tools(
            await run_request.send_context.workers.run(partial(_with_manifest, run_request)), parts={}, tools=tool_list
        )
    async with aclosing(execute_run(with_write_blocks(run_request), tools=tools)) as events:
        async for event in events:
            yield event


def _with_manifest(run_request: RunRequest) -> RunRequest:
    """Return the run request with the project manifest in L1, or with a note of later changes.

    The note is added if the last request already contained the manifest.
    """
    if run_request.runner_context.read_project is None:
        return with_system_parts_and_tools(run_request, parts={}, warning=_NO_PROJECT_WARNING)
    folder = run_request.runner_context.read_project()
    for warning in folder.warnings:
        run_request = with_system_parts_and_tools(run_request, parts={}, warning=warning)
    last_manifest = _find_last_manifest(run_request.conversation, folder)
    if last_manifest is None:
        return with_system_parts_and_tools(run_request, parts={"project": render_project_system_part(folder)})
    changes = describe_source_changes(last_manifest[0], folder, since=last_manifest[1])
    if not changes or run_request.turn_request is None:
        return run_request
    note = make_tool_result("project_sources", arguments={}, output=changes)
    return replace(
        run_request, turn_request=replace(run_request.turn_request, results=(*run_request.turn_request.results, note))
    )


def _find_last_manifest(chat: Conversation, folder: ProjectFolder) -> tuple[str, float] | None:
    """Return the manifest of the last request and the time of its question; None if a new manifest is needed.

    The manifest stays unchanged while sources come and go. A list that followed every change would change L1, and the
    provider would have to process the whole prompt again.
    """
    state, _ = chat.current_state
    last, part = state.last_prompt, state.system.project
    if last is None or last.turn_settings.runner != "project" or not part.startswith(render_project_header(folder)):
        return None
    asked = chat.turns()[-1].message.at
    return (part, datetime.fromisoformat(asked).timestamp()) if asked else None
