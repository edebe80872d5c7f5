"""An answer as data."""

from tests.bodies import as_json

from lamella import Conversation
from lamella.core.log.call import CacheOutcome, CacheVerdict, ModelCall, PrefixChange, PrefixChangeCause
from lamella.core.messages import Usage
from lamella.schemas.answers import answer_to_json
from lamella.schemas.ledger import call_to_json

CALL = ModelCall(
    model="local",
    verdict=CacheVerdict(outcome=CacheOutcome.FIRST, prefix_change=PrefixChange(cause=PrefixChangeCause.FIRST_TURN)),
    usage=Usage(plain=3),
)


def test_answer_json_has_documented_fields_and_call() -> None:
    turn = Conversation(conversation_key="demo").ask("What grows here?")
    body = answer_to_json(turn, "Beans.", CALL, conversation_key="demo")
    assert as_json(body) == {
        "lamella": 1,
        "conversation": "demo",
        "turn": 1,
        "answer": "Beans.",
        "warnings": [],
        "call": as_json(call_to_json(CALL)),
    }


def test_unstored_answer_names_no_conversation() -> None:
    assert answer_to_json(Conversation().ask("Hi"), "", CALL, conversation_key=None).conversation is None
