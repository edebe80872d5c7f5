"""What a call came to, in a line, and where a conversation stands."""

from collections.abc import Mapping
from decimal import Decimal

from lamella.engine.keeping.stored import StoredChat
from lamella.engine.sending.job import USUAL_RUNNER
from lamella.faces.cli.terminal.lines import show_line
from lamella.views.amounts import plain
from lamella.views.ledger import Call, find_answers, make_rows, sum_rows

# Keyed by why an answer ended, in the words of docs/ledger.md.
_ENDS: Mapping[str, str] = {
    "length": "The answer was cut: it is as long as --max-tokens allows.",
    "window": "The answer was cut: the window is full. /compact or `lamella compact` makes room.",
    "circles": "The answer was cut: it went in circles. Ask in other words, or ask a larger model.",
    "refused": "The model declined to answer, or to go on.",
    "paused": "The model paused; ask it to go on.",
}


def tell_call(call: Call) -> str:
    """Tokens, money and time of a call; what nobody reports is left out."""
    usage = call.usage
    told = [show_line(call.model or "no model")]
    if usage.prompt is not None:
        told.append(f"{usage.prompt:,} tokens in")
    if usage.read is not None:
        told.append(f"{usage.read:,} of them cached")
    if usage.output is not None:
        told.append(f"{usage.output:,} out")
    if call.billed is not None:
        told.append(f"${plain(call.billed)}")
    if call.timing.total is not None:
        told.append(f"{call.timing.total:.1f} s")
    return " · ".join(told)


def tell_requests(stored: StoredChat) -> str:
    """What all requests of the last question came to; nothing where its answer is the only one."""
    turns = stored.turns()
    sums = sum_rows(make_rows(turns, stored.ledger())[-1:])
    if not turns or not (turns[-1].rounds or sums.asides):
        return ""
    told = [f"{sums.calls:,} requests for this question"]
    if sums.plain is not None:
        told.append(f"{(sums.plain or 0) + (sums.read or 0) + (sums.write or 0):,} tokens in")
    told += [f"{sums.output:,} out"] if sums.output is not None else []
    told += [f"${plain(sums.billed)}"] if sums.billed is not None else []
    return " · ".join(told)


def tell_end(call: Call) -> str:
    """What should be said of how an answer ended; nothing if it ended by itself."""
    return _ENDS.get(call.stop, "")


def tell_standing(stored: StoredChat, model: str) -> str:
    """The share of the window in use, what of the last turn was cached, the cost so far, the model, another runner."""
    rows = make_rows(stored.turns(), stored.ledger())
    answers = find_answers([call for row in rows for call in row.calls])
    last = answers[-1] if answers else None
    told = [_tell_window(stored)]
    if last is not None:
        rate = last.usage.hit_rate
        told.append("cached: unknown" if rate is None else f"{rate:.0%} of the last turn cached")
        told.append(_tell_cost(sum_rows(rows).billed))
    runner = () if stored.runner == USUAL_RUNNER else (show_line(stored.runner),)
    return " · ".join((*told, show_line(model), *runner))


def _tell_window(stored: StoredChat) -> str:
    """By what the next request has before anything is typed; what waits for an answer has no next request yet."""
    if any(turn.reply is None for turn in stored.turns()[-1:]):
        return "an answer is missing"
    counts = stored.plan(to=1.0, summaries=False).before
    return f"{counts.total:,} of {counts.limit:,} tokens used ({counts.total / counts.limit:.0%})"


def _tell_cost(billed: Decimal | None) -> str:
    return "no price known" if billed is None else f"${plain(billed)} so far"
