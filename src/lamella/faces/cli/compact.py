"""``lamella compact``: make a conversation smaller, see first what would go, and take it back."""

from typing import Annotated

import typer

from lamella.engine.dialogue.proposal import EVERYTHING_SAID, PlanRange, Proposal
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import CallError, UsageError
from lamella.faces.cli.access import ChatName, JsonOption, StoreOption, name_command, opened_chat
from lamella.faces.cli.tables.compaction import (
    find_waiting,
    hint_unmoved,
    lower_share,
    print_planned,
    tell_planning,
    tell_stopped,
)
from lamella.faces.cli.terminal.lines import tell_count
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.views.receipts import view_plan, view_undo


def compact(
    *,
    chat: ChatName,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what would go and what it brings; change nothing.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Void the last compaction, as if it had never been.")] = False,
    receipt: Annotated[
        str | None, typer.Option(help="With --undo: void this compaction and all after it.", show_default=False)
    ] = None,
    to: Annotated[
        float | None,
        typer.Option(
            help="How much to come down to, as a share of what fits; else the setting `target`.", show_default=False
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="MESSAGE", help="Only from here on: its id, turn:3 or reply:3. What is before it stays as it is."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="MESSAGE", help="Only up to here: its id, turn:3 or reply:3.")
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Make room in a conversation. Nothing is lost: what is taken out can be recalled, and all of it undone.

    lamella compact garden --plan --to 0.01
    """
    within = PlanRange(since, until)
    _check_words(plan=plan, undo=undo, receipt=receipt, picks=to is not None or within != EVERYTHING_SAID)
    with opened_chat(store, chat) as stored:
        waits = find_waiting(stored.turns())
        if undo:
            _undo(stored, receipt, as_json=as_json)
        else:
            back = name_command("compact", stored.name, undo=True, store=store)
            _compact(stored, within, to, undo=None if plan else back, as_json=as_json)
        tell_stopped(None if plan else waits, again=name_command("chats regenerate", stored.name, store=store))


def _check_words(*, plan: bool, undo: bool, receipt: str | None, picks: bool) -> None:
    if receipt is not None and not undo:
        raise UsageError("--receipt needs --undo.", hint="Add --undo.")
    if undo and (plan or picks):
        raise UsageError("--undo excludes --plan, --to, --since and --until.", hint="Undo first, then plan anew.")


def _compact(stored: StoredChat, within: PlanRange, to: float | None, *, undo: str | None, as_json: bool) -> None:
    with told_if_slow(f"Planning what {stored.name} can do without"):
        stored.check_summarizer()
        planned = stored.plan(within, to=to)
    tell_planning(planned)
    if planned.receipt is None:
        raise _nothing(stored, planned)
    if undo is not None:
        stored.commit(planned)
    if as_json:
        tell_json(view_plan(stored.id, planned, committed=undo is not None))
    else:
        print_planned(stored.name, planned, undo=undo)


def _nothing(stored: StoredChat, planned: Proposal) -> CallError:
    size = f"the next request of {stored.name} has {planned.before.total:,} tokens"
    if planned.before.total <= planned.goal:
        return CallError(
            f"There is nothing to compact: {size}, and up to {planned.goal:,} are aimed for.",
            hint=f"Aim lower, for example with --to {lower_share(planned):.2g}.",
        )
    return CallError(
        f"There is nothing to compact: {size}, and none of them may go.",
        hint=hint_unmoved(stored),
    )


def _undo(stored: StoredChat, receipt: str | None, *, as_json: bool) -> None:
    before = stored.receipts()
    stored.undo(receipt)
    left = {one.id for one in stored.receipts()}
    undone = [one.id for one in before if one.id not in left]
    if as_json:
        tell_json(view_undo(stored.id, undone))
        return
    what = tell_count(len(undone), "compaction")
    size = stored.plan(to=1.0, summaries=False).before
    tell(f"Undone: {what} ({', '.join(undone)}). The next request has {size.total:,} of {size.limit:,} tokens.")
