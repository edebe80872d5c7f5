"""``lamella request``: print the exact request body of a turn for a provider; no API key is needed."""

from collections.abc import Iterator
from typing import Annotated

import typer

from lamella import Turn
from lamella.cli.access import StoreOption
from lamella.cli.output import print_json, print_raw_json, with_progress
from lamella.cli.transcripts import replay_named
from lamella.errors import UsageError
from lamella.schemas.prompts import CommandRequestJson
from lamella.wiring import build_request_body, read_services


def request(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|CHAT",
            help="Transcript file (docs/reference/formats/transcript.md), - for stdin, or a conversation.",
        ),
    ],
    provider: Annotated[str, typer.Option(help="Request format: anthropic, openai, openai-responses or gemini.")],
    turn: Annotated[int | None, typer.Option(min=1, help="Turn number.", show_default="the last")] = None,
    model: Annotated[str | None, typer.Option(help="Model to use.", show_default="the conversation's model")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum answer length in tokens.", show_default="4096")
    ] = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Wrap the request in an object, as `body`.")] = False,
) -> None:
    """Print the request body of a turn as JSON.

    For a conversation it is the request that was sent, unless you name another model. Nothing is sent, and no API key
    is needed.

    lamella request examples/walkthrough.json --provider anthropic --turn 3
    """
    services = read_services()
    conversation, count, turns = replay_named(file, overrides={"model": model}, store=store, services=services)
    selected = _select_turn(with_progress(turns, "Replaying", total=turn or count), turn, count=count)
    body = build_request_body(
        selected,
        provider,
        max_answer_tokens=max_tokens,
        allow_any_model=model is not None,
        model=model,
        services=services,
    )
    if as_json:
        print_json(CommandRequestJson(conversation=conversation, turn=selected.number, provider=provider, body=body))
    else:
        print_raw_json(body)


def _select_turn(turns: Iterator[Turn], number: int | None, *, count: int) -> Turn:
    selected_number = number or count
    if not 1 <= selected_number <= count:
        hint = f"Choose a turn from 1 to {count:,}." if count else "Add at least one turn."
        raise UsageError(f"Turn not found: {selected_number:,} (the conversation has {count:,}).", hint=hint)
    return next(turn for turn in turns if turn.number == selected_number)
