"""Signed reasoning is sent again exactly where everything in front of it is what it was made behind."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.compacting import EAGER, tight_stored_conversations
from tests.invariants.moves import Kept
from tests.invariants.test_sent_turns import SentRecorder

from lamella import ModelReply, ToolCall, Turn
from lamella.conversation.conversation import Conversation
from lamella.conversation.turn import ModelAnswer
from lamella.core.messages import Message, ModelRequest, ProviderReply, StopReason, ToolOutput
from lamella.stores.memory import InMemoryStore

TRIED = settings.get_profile("invariants")


def front(request: ModelRequest, messages: Sequence[Message]) -> str:
    """Everything that a provider sees before a reply."""
    tools = [(tool.name, tool.description, tool.parameters) for tool in request.tools]
    seen = [(one.to_dict(), one.provider_reply.json if one.provider_reply else None) for one in messages]
    return repr((request.model, tools, seen))


def thoughts(message: Message) -> list[Any]:
    blocks = json.loads(message.provider_reply.json) if message.provider_reply else []
    return [block["signature"] for block in blocks if block["type"] == "thinking"]


class SigningRecorder(SentRecorder):
    """Plays moves with a provider that signs its reasoning, and checks each request as this provider would."""

    def __init__(self, kept: Kept, folder: Path, store: InMemoryStore, rounds: Sequence[int]) -> None:
        self.made: dict[str, str] = {}
        self.kept_count = self.dropped_count = 0
        super().__init__(kept, folder, store, rounds)

    def call_tools(self, conversation: Conversation, number: int) -> Turn:
        request = self.check(self.sent[conversation.head])
        signature = f"s{len(self.made)}"
        self.made[signature] = front(request, request.messages)
        call = ToolCall(id=signature, name="look", arguments="{}")
        blocks = [
            {"type": "thinking", "thinking": "hm " * 30, "signature": signature},
            {"type": "tool_use", "id": signature, "name": "look", "input": {}},
        ]
        native = ProviderReply(format="anthropic", json=json.dumps(blocks))
        said = ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(call,), provider_reply=native)
        conversation.reply(ModelAnswer(reply=said))
        return conversation.submit_tool_outputs([ToolOutput(call=signature, output=f"Page {number}.")])

    def check(self, turn: Turn) -> ModelRequest:
        """The request of a turn, whose signatures are all those that are valid and no other."""
        request = turn.build_model_request(model=turn.envelope.model or "anthropic:other", max_answer_tokens=100)
        dropped = 0
        for position, message in enumerate(request.messages):
            if message.calls:
                signature = message.calls[0].id
                is_valid = self.made[signature] == front(request, request.messages[:position])
                assert thoughts(message) == ([signature] if is_valid else [])
                assert is_valid or message.tokens < 40, "dropped reasoning is not paid for"
                dropped += not is_valid
        assert len(turn.ledger.prefix.dropped_reasoning) == dropped
        self.dropped_count += dropped
        self.kept_count += sum(bool(message.calls) for message in request.messages) - dropped
        return request


@TRIED
@given(tight_stored_conversations(), st.lists(st.sampled_from((0, 1, 2)), min_size=12, max_size=12))
def test_signature_is_sent_only_behind_the_bytes_that_it_was_made_behind(kept: Kept, rounds: list[int]) -> None:
    kept = replace(kept, settings=(*kept.settings, ("compaction", EAGER)))
    with TemporaryDirectory() as folder:
        played = SigningRecorder(kept, Path(folder), InMemoryStore(), rounds)
        played.walk(kept.reopened)
        played.reopen()
        for turn in {id(one): one for one in (*played.sent.values(), *played.turns)}.values():
            played.check(turn)
        for head in played.stored.branches():
            for turn in played.stored.replay(head=head):
                request = turn.build_model_request(
                    model=turn.envelope.model or "anthropic:other", max_answer_tokens=100
                )
                for position, message in enumerate(request.messages):
                    for signature in thoughts(message):
                        assert played.made[signature] == front(request, request.messages[:position])
        played.close()
