"""Memory: the folder that settings say, and which conversations take it up."""

from pathlib import Path
from typing import TYPE_CHECKING

from lamella.errors import SettingError
from lamella.settings.values import MemoryUse
from lamella.wiring.services import Services, read_services

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamella.engine.memory import MemoryPart
    from lamella.ports import MemoryBook

_FOLDER = "~/.lamella/memory"


def open_memory(folder: str | Path | None = None, *, services: Services | None = None) -> "MemoryBook":
    """What is remembered in a folder, by default in the one that settings name; a folder is made by the first fact."""
    from lamella.adapters.files.naming import find_real
    from lamella.adapters.memory.files import MemoryFiles

    if folder is None:
        services = services or read_services()
        for error in services.found.find_overreach(("memory_folder",)):
            raise error
        folder = services.settings.memory_folder or _FOLDER
    return MemoryFiles(find_real(folder))


def find_part(services: Services, *, talks: bool = False, wanted: bool | None = None) -> "MemoryPart | None":
    """What conversations have of the memory in their prompts; none where each keeps what it has.

    ``talks`` says that people talk in them, ``wanted`` what a program says whatever settings do.
    """
    from lamella.engine.memory import make_part, no_part

    use = _find_use(services) if wanted is None else MemoryUse.ON if wanted else MemoryUse.CHAT
    match use:
        case MemoryUse.OFF:
            return no_part
        case MemoryUse.CHAT if not talks:
            return None
    return make_part(open_memory(services=services))


def find_book(services: Services, part: "MemoryPart | None") -> "Callable[[], MemoryBook] | None":
    """What opens the memory for tools, where conversations have it in their prompts. Nothing is opened by that."""
    from lamella.engine.memory import no_part

    return None if part is None or part is no_part else lambda: open_memory(services=services)


def _find_use(services: Services) -> MemoryUse:
    for error in services.found.find_overreach(("memory",)):
        raise error
    try:
        return MemoryUse(services.settings.memory)
    except ValueError as error:
        raise SettingError(
            f"There is no memory {services.settings.memory!r}.", hint=f"Choose one of: {', '.join(MemoryUse)}."
        ) from error


def forget_chat(chat: str, *, services: Services | None = None) -> None:
    """Take out of the memory what tells of a conversation that is to be erased."""
    open_memory(services=services).forget(chat)
