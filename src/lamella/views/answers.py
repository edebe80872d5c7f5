"""What a question came to: the answer with its call; and the ways of answering."""

from collections.abc import Mapping

from lamella.core.log.call import Call
from lamella.views.ledger import view_call
from lamella.views.turns import TurnShape


def view_answer(turn: TurnShape, answer: str, call: Call, *, conversation: str | None) -> dict[str, object]:
    """A turn that was answered; ``conversation`` is none where nothing is kept."""
    return {
        "lamella": 1,
        "conversation": conversation,
        "turn": turn.number,
        "answer": answer,
        "warnings": list(turn.envelope.warnings),
        "call": view_call(call),
    }


def view_runners(known: Mapping[str, str], *, usual: str) -> dict[str, object]:
    """Every runner with what it does, and whether settings choose it."""
    return {"runners": [{"name": name, "does": does, "usual": name == usual} for name, does in known.items()]}
