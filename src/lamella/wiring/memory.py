"""The memory: its folder, and which conversations include it in their prompts."""

from pathlib import Path
from typing import TYPE_CHECKING

from lamella.errors import SettingError
from lamella.settings.model import MemoryScope
from lamella.wiring.services import ServiceContainer, read_services

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamella.conversation.memory import RenderMemory
    from lamella.ports import UserMemory

_DEFAULT_FOLDER = "~/.lamella/memory"


def open_memory(folder: str | Path | None = None, *, services: ServiceContainer | None = None) -> "UserMemory":
    """Return the memory in a folder, by default the configured one; the first fact creates the folder."""
    from lamella.files import resolve_path
    from lamella.memory import MemoryFileStore

    if folder is None:
        services = services or read_services()
        for error in services.resolved.errors_for_project_settings(("memory_folder",)):
            raise error
        folder = services.settings.memory_folder or _DEFAULT_FOLDER
    return MemoryFileStore(resolve_path(folder))


def choose_memory_renderer(
    services: ServiceContainer, *, is_interactive: bool = False, enabled: bool | None = None
) -> "RenderMemory | None":
    """Return the part of the memory for prompts; None if each conversation keeps the part it has.

    ``is_interactive`` says that the conversations are interactive. ``enabled`` is the choice of a program, which
    overrides the setting.
    """
    from lamella.conversation.memory import make_memory_renderer, no_memory_text

    use = _get_memory_scope(services) if enabled is None else MemoryScope.ON if enabled else MemoryScope.CHAT
    match use:
        case MemoryScope.OFF:
            return no_memory_text
        case MemoryScope.CHAT if not is_interactive:
            return None
    return make_memory_renderer(open_memory(services=services))


def make_memory_opener(
    services: ServiceContainer, render_memory: "RenderMemory | None"
) -> "Callable[[], UserMemory] | None":
    """Return a function that opens the memory for tools, or None if prompts do not include the memory."""
    from lamella.conversation.memory import no_memory_text

    return None if render_memory is None or render_memory is no_memory_text else lambda: open_memory(services=services)


def _get_memory_scope(services: ServiceContainer) -> MemoryScope:
    for error in services.resolved.errors_for_project_settings(("memory",)):
        raise error
    try:
        return MemoryScope(services.settings.memory)
    except ValueError as error:
        raise SettingError(
            f"There is no memory {services.settings.memory!r}.", hint=f"Choose one of: {', '.join(MemoryScope)}."
        ) from error


def remove_conversation_fact(conversation_key: str, *, services: ServiceContainer | None = None) -> None:
    """Remove the line about a conversation from the memory, before the conversation is erased."""
    open_memory(services=services).forget_conversation(conversation_key)
