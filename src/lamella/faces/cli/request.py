"""``lamella request``: what a provider would be sent for a turn, byte for byte, without a key."""

from collections.abc import Iterator
from typing import Annotated

import typer

from lamella import Turn
from lamella.errors import UsageError
from lamella.faces.cli.access import StoreOption
from lamella.faces.cli.terminal.progress import counted
from lamella.faces.cli.terminal.telling import tell_foreign, tell_json
from lamella.faces.cli.transcripts import replay_named
from lamella.wiring import read_services, write_request


def request(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|CHAT", help="A transcript (docs/transcript.md), - for stdin, or a kept conversation."
        ),
    ],
    provider: Annotated[str, typer.Option(help="The wire format: anthropic, openai, openai-responses or gemini.")],
    turn: Annotated[int | None, typer.Option(min=1, help="Which turn; else the last.", show_default=False)] = None,
    model: Annotated[str | None, typer.Option(help="Another model than the conversation's.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="The most that the answer may have; else 4,096.", show_default=False)
    ] = None,
    store: StoreOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print an object that holds it as `body`; it is JSON either way.")
    ] = False,
) -> None:
    """Print the request body of a turn as JSON, as the provider's SDK would send it. Nothing is sent; no key is needed.

    lamella request examples/walkthrough.json --provider anthropic --turn 3
    """
    services = read_services()
    conversation, count, turns = replay_named(file, overrides={"model": model}, store=store, services=services)
    wanted = _find(counted(turns, "Replaying", total=turn or count), turn, count=count)
    body = write_request(wanted, provider, answer=max_tokens, any_model=model is not None, services=services)
    if as_json:
        tell_json({"conversation": conversation, "turn": wanted.number, "provider": provider, "body": body})
    else:
        tell_foreign(body)


def _find(turns: Iterator[Turn], number: int | None, *, count: int) -> Turn:
    wanted = number or count
    if not 1 <= wanted <= count:
        hint = f"Choose one from 1 to {count:,}." if count else "Write at least one turn."
        raise UsageError(f"There is no turn {wanted:,}: the conversation has {count:,}.", hint=hint)
    return next(turn for turn in turns if turn.number == wanted)
