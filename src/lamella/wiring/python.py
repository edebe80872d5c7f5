"""What Python programs open: a conversation in memory, or an engine over a store."""

import asyncio
from collections.abc import Mapping
from functools import partial
from os import PathLike

from lamella.adapters.sources.naming import MentionOutcome
from lamella.adapters.stores.opening import open_store
from lamella.engine.checks import (
    check_allow,
    check_folder,
    check_parts,
    check_patience,
    check_provider,
    check_summarizer,
    check_switch,
    check_text,
)
from lamella.engine.discourse import Discourse
from lamella.engine.engine import Engine
from lamella.engine.sending.summaries import OFF, SAME
from lamella.errors import CallError
from lamella.ports import AllowWrite, ChatProvider, Summarizer
from lamella.runners.registry import RUNNERS
from lamella.settings.system import read_parts
from lamella.wiring.archives import open_archive
from lamella.wiring.providers import begin_settings, open_pool
from lamella.wiring.reading import open_files
from lamella.wiring.running.memory import find_book, find_part, open_memory
from lamella.wiring.running.workplaces import make_remember, open_workplace, open_writer
from lamella.wiring.services import read_services
from lamella.wiring.stores import open_backend
from lamella.wiring.worlds import open_dialogue


class Conversation(Discourse):
    """One conversation. ``ask`` gives what a model would be sent; ``reply`` records what it answered.

    Settings such as ``layout``, ``window`` or ``carry_forward`` are given by their names; see docs/settings.md.
    Without a ``ledger`` nothing is predicted or priced: a turn has its messages, tokens and the cause of a move.
    A ``summarizer`` is asked when the oldest turns have to become a summary; without one other steps make room. What is
    in memory asks no model by itself: ``same`` and ``off`` mean that nobody is.
    """

    def __init__(
        self,
        *,
        system: str | Mapping[str, str] | None = None,
        conversation: str = "chat",
        vault: str | PathLike[str] | None = None,
        ledger: bool = True,
        summarizer: Summarizer | str | None = None,
        **settings: object,
    ) -> None:
        own = None if summarizer in (SAME, OFF) else summarizer
        if isinstance(own, str):
            raise CallError(
                f"A conversation in memory asks no model, {own} neither.",
                hint="Give an object with a method summarize, or open a store with lamella.open(…).",
            )
        services = read_services(settings)
        dialogue = open_dialogue(
            services,
            conversation=check_text(conversation, "conversation", may_be_empty=False),
            vault=check_folder(vault),
            ledger=ledger,
            summarizer=check_summarizer(own),
        )
        given = {} if system is None else check_parts(system)
        super().__init__(dialogue, system={**read_parts(services.found), **given})


def find_mentions(text: str, *, vault: str | PathLike[str]) -> list[MentionOutcome]:
    """What a typed text names with ``@path``, ``[[Note]]``, ``@#tag`` or ``@https://…``: what each attaches or why not.

    No file outside the vault is looked at, and no page is fetched before it is asked with. ``attach`` of each
    outcome goes into ``ask`` or ``send``.
    """
    root = check_folder(vault)
    if root is None:
        # Without a vault a name may lead anywhere on the disk, which is for a person at a terminal alone.
        raise CallError("vault is None, not a folder.", hint="Give the folder that names may lead to.")
    return open_files(root).find_mentions(check_text(text, "text"))


def open_engine(
    url: str,
    *,
    vault: str | PathLike[str] | None = None,
    ledger: bool = True,
    summarizer: Summarizer | str | None = None,
    model: str | None = None,
    provider: ChatProvider | None = None,
    patience: float | None = None,
    tries: int | None = None,
    allow: AllowWrite | None = None,
    memory: bool | None = None,
) -> Engine:
    """Open a store of conversations: ``sqlite:///chats.db`` or ``postgresql://host/name``.

    ``model`` is what conversations are sent to, ``provider`` what sends, in place of the one that the model names.
    ``patience`` is how many seconds of silence are borne, and the longest wait that a provider may ask for (120);
    ``tries`` is how often a request is sent before giving up (4). ``summarizer`` is an object that writes summaries, or
    what the setting takes. ``allow`` is asked with a ``NoteChange`` before a model writes a note or remembers a fact,
    and says ``True`` or not, at once or awaited. ``memory`` says whether conversations take up what is remembered.
    """
    named = None if model is None else check_text(model, "model", may_be_empty=False)
    services, folder, (by_name, by_hand) = read_services(), check_folder(vault), _split_summarizer(summarizer)
    part, book = find_part(services, wanted=check_switch(memory, "memory")), partial(open_memory, services=services)
    pool = open_pool(check_provider(provider), services=services, patience=check_patience(patience, tries))
    open_it = partial(
        open_backend,
        check_text(url, "url"),
        services=services,
        vault=folder,
        ledger=ledger,
        summarizer=by_hand,
        pool=pool,
        memory=part,
    )
    return Engine(
        # A loop is not held up by a disk or a server: `async with` awaits what else is done here and now.
        open_it if _runs_loop() else open_it(),
        pool,
        runners=RUNNERS,
        model=named,
        summarizer=by_name,
        archive=open_archive(),
        open_store=open_store,
        fit=partial(begin_settings, services=services),
        place=open_workplace(services, vault=folder, allow=check_allow(allow), book=find_book(services, part)),
        restore=None if folder is None else lambda note: open_writer(folder, services).restore(note),
        memory=book,
        remember=partial(make_remember, services, allow=allow, book=book),
    )


def _split_summarizer(given: Summarizer | str | None) -> tuple[str | None, Summarizer | None]:
    """Who writes summaries: by name, as the setting has it, or an object that does."""
    if isinstance(given, str):
        return check_text(given, "summarizer", may_be_empty=False), None
    return None, check_summarizer(given)


def _runs_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
