"""What a question came to: the answer with its call."""

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
