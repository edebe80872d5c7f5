"""Entry points for Python programs: an engine over a store, and the names in a text."""

import asyncio
from functools import partial
from os import PathLike

from lamella.conversation.engine import Engine
from lamella.conversation.validation import (
    build_retry_policy,
    check_allow_function,
    check_bool,
    check_provider,
    check_summarizer,
    check_text,
    to_folder_path,
)
from lamella.errors import InvalidOperationError
from lamella.ports import AllowWrite, ModelProvider, Summarizer
from lamella.runners.registry import RUNNERS
from lamella.sources.mentions import MentionOutcome
from lamella.stores.open_store import open_store
from lamella.wiring.archives import open_archive
from lamella.wiring.memory import choose_memory_renderer, make_memory_opener, open_memory
from lamella.wiring.providers import default_settings_for, open_pool
from lamella.wiring.runner_context import build_remember_tool, open_note_writer, open_runner_context
from lamella.wiring.services import read_services
from lamella.wiring.sources import open_attachment_resolver
from lamella.wiring.stores import open_backend


def find_mentions(text: str, *, vault: str | PathLike[str]) -> list[MentionOutcome]:
    """Return a result for each ``@path``, ``[[Note]]``, ``@#tag`` or ``@https://…`` in a typed text.

    Each result has the attachments, or says why there are none. Pass its ``attach`` to ``ask`` or ``send``. No file
    outside the vault is read, and pages are fetched only with the turn.
    """
    root = to_folder_path(vault)
    if root is None:
        # Without a vault a name could lead to any file on the disk. Only the user at a terminal may do that.
        raise InvalidOperationError("vault is None, not a folder.", hint="Give the folder that names may lead to.")
    return open_attachment_resolver(root).resolve_mentions(check_text(text, "text"))


def open_engine(
    url: str,
    *,
    vault: str | PathLike[str] | None = None,
    keep_ledger: bool = True,
    summarizer: Summarizer | str | None = None,
    model: str | None = None,
    provider: ModelProvider | None = None,
    timeout: float | None = None,
    max_attempts: int | None = None,
    allow: AllowWrite | None = None,
    memory: bool | None = None,
) -> Engine:
    """Open a store of conversations: ``sqlite:///chats.db`` or ``postgresql://host/name``.

    - ``model``: the model that conversations are sent to.
    - ``provider``: an object that sends requests, instead of the provider that the model names.
    - ``timeout``: how many seconds without data to wait, and the longest wait that a provider may ask for (120).
    - ``max_attempts``: how often a request is sent before giving up (4).
    - ``summarizer``: an object that writes summaries, or a value of the setting.
    - ``allow``: is called with a ``NoteChange`` before a model writes a note or remembers a fact. It returns
      whether that is permitted, directly or as an awaitable.
    - ``memory``: whether prompts include the current memory, regardless of the setting.
    """
    named = None if model is None else check_text(model, "model", may_be_empty=False)
    services, folder, (by_name, by_hand) = (
        read_services(),
        to_folder_path(vault),
        _split_summarizer_argument(summarizer),
    )
    part, book = (
        choose_memory_renderer(services, enabled=check_bool(memory, "memory")),
        partial(open_memory, services=services),
    )
    pool = open_pool(
        check_provider(provider), services=services, retry_policy=build_retry_policy(timeout, max_attempts)
    )
    open_it = partial(
        open_backend,
        check_text(url, "url"),
        services=services,
        vault=folder,
        keep_ledger=keep_ledger,
        summarizer=by_hand,
        pool=pool,
        render_memory=part,
    )
    return Engine(
        # Inside an event loop the store is opened later, by `async with`, so that the disk or the server does not block
        # the loop.
        open_it if _is_loop_running() else open_it(),
        pool,
        runners=RUNNERS,
        model=named,
        summarizer=by_name,
        archive=open_archive(),
        open_store=open_store,
        default_settings=partial(default_settings_for, services=services),
        runner_context=open_runner_context(
            services, vault=folder, allow=check_allow_function(allow), open_memory=make_memory_opener(services, part)
        ),
        restore_note=None if folder is None else lambda note: open_note_writer(folder, services).restore(note),
        open_memory=book,
        make_remember_tool=partial(build_remember_tool, services, allow=allow, open_memory=book),
    )


def _split_summarizer_argument(summarizer: Summarizer | str | None) -> tuple[str | None, Summarizer | None]:
    """Return the summarizer's name and the summarizer object; one of both is None."""
    if isinstance(summarizer, str):
        return check_text(summarizer, "summarizer", may_be_empty=False), None
    return None, check_summarizer(summarizer)


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
