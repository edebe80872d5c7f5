"""An answer as data."""

import re

from tests.contracts.places import doc

from lamella import Conversation
from lamella.core.log.call import Call, Cause, Movement, Outcome, Verdict
from lamella.core.messages.usage import Usage
from lamella.views.answers import view_answer
from lamella.views.ledger import view_call

CALL = Call(
    model="local",
    verdict=Verdict(outcome=Outcome.FIRST, movement=Movement(cause=Cause.FIRST_TURN)),
    usage=Usage(plain=3),
)


def test_an_answer_has_the_documented_fields_and_its_call_as_in_the_ledger() -> None:
    turn = Conversation(conversation="demo").ask("What grows here?")
    body = view_answer(turn, "Beans.", CALL, conversation="demo")
    row = next(line for line in doc("chat.md").splitlines() if line.startswith("| `--json` |"))
    assert set(body) - {"lamella"} == set(re.findall(r"`(\w+)`", row))
    assert body == {
        "lamella": 1,
        "conversation": "demo",
        "turn": 1,
        "answer": "Beans.",
        "warnings": [],
        "call": view_call(CALL),
    }


def test_an_answer_that_is_not_kept_names_no_conversation() -> None:
    assert view_answer(Conversation().ask("Hi"), "", CALL, conversation=None)["conversation"] is None
