"""What a question came to: the answer with its call, and how a failure is told."""

from lamella.core.log.call import Call
from lamella.errors import LamellaError
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


def view_error(error: LamellaError, *, message: str | None = None, hint: str | None = None) -> dict[str, object]:
    """An error, everywhere of this one shape; a face may word it for those who read it."""
    return {
        "error": {
            "code": error.code,
            "message": error.message if message is None else message,
            "hint": error.hint if hint is None else hint,
        }
    }
