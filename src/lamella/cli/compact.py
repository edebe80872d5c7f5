"""``lamella compact``: plan, run and undo a compaction of a conversation."""

from typing import Annotated

import typer

from lamella.cli.access import ChatArgument, JsonOption, StoreOption, format_command, open_conversation
from lamella.cli.compaction_tables import (
    cannot_shrink_hint,
    find_unanswered_question,
    half_of_current_share,
    print_compaction,
    print_plan_warnings,
    print_stopped_question,
)
from lamella.cli.output import format_count, print_json, print_text, show_if_slow
from lamella.conversation.compaction import WHOLE_CONVERSATION, CompactionProposal, CompactionRange
from lamella.conversation.conversation import Conversation
from lamella.errors import InvalidOperationError, UsageError
from lamella.schemas.compaction import UndoResultJson, plan_to_json


def compact(
    *,
    chat: ChatArgument,
    plan: Annotated[
        bool, typer.Option("--plan", help="Preview: show what would be removed and how many tokens that saves.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the last compaction.")] = False,
    receipt: Annotated[
        str | None, typer.Option(help="With --undo: undo this compaction and all later ones.", show_default=False)
    ] = None,
    to: Annotated[
        float | None,
        typer.Option(help="Target size as a share of the context window.", show_default="0.4, setting `target`"),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="MESSAGE", help="First message to compact: an id, turn:3 or reply:3."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="MESSAGE", help="Last message to compact: an id, turn:3 or reply:3.")
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Shorten the prompt of a conversation. Removed text stays searchable, and you can undo it.

    lamella compact garden --plan --to 0.01
    """
    range_ = CompactionRange(since, until)
    _check_options(
        plan=plan, undo=undo, receipt=receipt, limits_compaction=to is not None or range_ != WHOLE_CONVERSATION
    )
    with open_conversation(store, chat) as conversation_log:
        # Read before the command runs: compacting or undoing ends an unanswered question.
        unanswered_question = find_unanswered_question(conversation_log.turns())
        if undo:
            _undo(conversation_log, receipt, as_json=as_json)
        else:
            back = format_command("compact", conversation_log.name, undo=True, store=store)
            _compact(conversation_log, range_, to, undo_command=None if plan else back, as_json=as_json)
        print_stopped_question(
            None if plan else unanswered_question,
            retry_command=format_command("chats regenerate", conversation_log.name, store=store),
        )


def _check_options(*, plan: bool, undo: bool, receipt: str | None, limits_compaction: bool) -> None:
    if receipt is not None and not undo:
        raise UsageError("--receipt needs --undo.", hint="Add --undo.")
    if undo and (plan or limits_compaction):
        raise UsageError(
            "Use either --undo or --plan, --to, --since and --until, not both.", hint="Undo first, then compact again."
        )


def _compact(
    conversation_log: Conversation,
    range_: CompactionRange,
    target_share: float | None,
    *,
    undo_command: str | None,
    as_json: bool,
) -> None:
    with show_if_slow(f"Planning the compaction of {conversation_log.name}"):
        conversation_log.check_summarizer_is_trusted()
        planned = conversation_log.plan(target_share, since=range_.since, until=range_.until)
    print_plan_warnings(planned)
    if planned.receipt is None:
        raise _nothing_to_compact_error(conversation_log, planned)
    if undo_command is not None:
        conversation_log.commit(planned)
    if as_json:
        print_json(plan_to_json(conversation_log.id, planned, committed=undo_command is not None))
    else:
        print_compaction(conversation_log.name, planned, undo_command=undo_command)


def _nothing_to_compact_error(conversation_log: Conversation, proposal: CompactionProposal) -> InvalidOperationError:
    size = f"the next request of {conversation_log.name} has {proposal.before.total:,} tokens"
    if proposal.before.total <= proposal.target_tokens:
        return InvalidOperationError(
            f"Nothing to compact: {size}, and the target is {proposal.target_tokens:,}.",
            hint=f"Set a lower target, for example --to {half_of_current_share(proposal):.2g}.",
        )
    return InvalidOperationError(
        f"Nothing to compact: {size}, and all of them are protected.",
        hint=cannot_shrink_hint(conversation_log),
    )


def _undo(conversation_log: Conversation, receipt: str | None, *, as_json: bool) -> None:
    before = conversation_log.receipts()
    conversation_log.undo(receipt)
    left = {one.id for one in conversation_log.receipts()}
    undone = [one.id for one in before if one.id not in left]
    if as_json:
        print_json(UndoResultJson(conversation=conversation_log.id, undone=undone))
        return
    what = format_count(len(undone), "compaction")
    size = conversation_log.plan(to=1.0, summaries=False).before
    print_text(f"Undone: {what} ({', '.join(undone)}). The next request has {size.total:,} of {size.limit:,} tokens.")
