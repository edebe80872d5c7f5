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


def test_an_answer_has_the_documented_fields_and_its_call_as_in_the_ledger() -> None:
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


def test_an_answer_that_is_not_kept_names_no_conversation() -> None:
    assert answer_to_json(Conversation().ask("Hi"), "", CALL, conversation_key=None).conversation is None
