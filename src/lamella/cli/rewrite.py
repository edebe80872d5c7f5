"""Edit, regenerate and resume a question from a script."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

from lamella import Turn
from lamella.cli.access import open_conversation
from lamella.cli.chat.opening import (
    ChatOptions,
    OpenedConversation,
    get_unanswered_turn,
    open_for_chat,
    print_demo_model_notice,
)
from lamella.cli.chat.output import PlainOutput, show_events
from lamella.cli.chat.status import describe_stop_reason, format_model_call, format_requests_total
from lamella.cli.interrupts import raise_resume_hint_on_interrupt
from lamella.cli.output import print_json, print_text
from lamella.conversation.conversation import Conversation
from lamella.conversation.turn_runner import TurnEvent
from lamella.conversation.validation import check_text
from lamella.errors import UntrustedError


def edit_question(
    chat: str,
    message: str,
    text: str,
    *,
    model: str | None,
    max_answer_tokens: int | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Ask ``text`` in place of a message; the answer goes to stdout, everything else to stderr."""
    asked = check_text(text, "the question")
    options = ChatOptions(
        store=store, chat=chat, model=model, max_answer_tokens=max_answer_tokens, expects_more_turns=False
    )
    _answer_and_print(options, lambda stored: stored.edit(message, asked), as_json=as_json)


def regenerate_answer(
    chat: str,
    message: str | None,
    *,
    model: str | None,
    max_answer_tokens: int | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Regenerate the answer to a question, by default to the last one, with another model if one is named."""
    options = ChatOptions(
        store=store, chat=chat, model=model, max_answer_tokens=max_answer_tokens, expects_more_turns=False
    )
    _answer_and_print(options, lambda stored: stored.regenerate(message, model=model), as_json=as_json)


def resume_question(
    chat: str,
    *,
    vault: Path | None,
    model: str | None,
    max_answer_tokens: int | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Resume the unanswered question where it stopped; another model starts it from the beginning."""
    options = ChatOptions(
        store=store, chat=chat, model=model, vault=vault, max_answer_tokens=max_answer_tokens, expects_more_turns=False
    )
    _answer_and_print(options, lambda stored: get_unanswered_turn(stored, model), as_json=as_json)


def _answer_and_print(options: ChatOptions, open_turn: Callable[[Conversation], Turn], *, as_json: bool) -> None:
    assert options.chat is not None
    # Opening for a chat would start a missing conversation, so look it up first: this raises if it does not exist.
    with open_conversation(options.store, options.chat) as conversation_log:
        output, named = PlainOutput(quiet=as_json), replace(options, chat=conversation_log.name)
    with open_for_chat(named, output) as opened:
        print_demo_model_notice(opened.model)
        with raise_resume_hint_on_interrupt(opened, options):
            turn = asyncio.run(_run_turn(opened, open_turn, output))
        if as_json:
            print_json(opened.answer_to_json(turn))
        call = turn.ledger.calls[-1]
        for line in (
            describe_stop_reason(call),
            format_model_call(call),
            format_requests_total(opened.conversation),
        ):
            if line:
                print_text(line, err=True)


async def _run_turn(opened: OpenedConversation, open_turn: Callable[[Conversation], Turn], output: PlainOutput) -> Turn:
    before = opened.conversation.head
    turn = open_turn(opened.conversation)
    try:
        done = await show_events(_stream_answer(opened, turn, before), output)
    finally:
        await opened.pool.close()
    assert done is not None
    return done


def _stream_answer(opened: OpenedConversation, turn: Turn, previous_head: str) -> AsyncGenerator[TurnEvent, None]:
    """Return the events of the answer; if the turn's model is not trusted, switch back to the previous branch."""
    try:
        return opened.run(turn)
    except UntrustedError:
        opened.conversation.switch(previous_head)
        raise
