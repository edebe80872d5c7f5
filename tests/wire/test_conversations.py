"""Whole conversations, as Lamella lays them out, against every provider's cache."""

from collections.abc import Callable

import pytest
from tests.wire.kinds import WIRES, Wire
from tests.wire.material import note, reply_to

from lamella import Conversation, Note
from lamella.core.messages import ModelRequest

Converse = Callable[..., Conversation]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_in_place_conversation_reads_back_everything_sent(wire: Wire, converse: Converse) -> None:
    chat = converse(system="Be terse. " * 600, layout="in_place")
    sent = 0
    with wire.serve() as server:
        for number in range(4):
            attach = [Note(path=f"{number}.md", text=note(str(number), 6_000))]
            turn = chat.ask(f"Question {number}?", attach=attach)
            request = ModelRequest(model=wire.model, messages=turn.messages, conversation="harbour")
            reply = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), request)
            chat.reply(reply.text)
            assert reply.usage.read is not None
            assert reply.usage.prompt_tokens is not None
            # One that keeps beginnings as they are matches up to where a closing bracket became a comma.
            assert sent - 8 <= reply.usage.read <= sent or sent < 4_096
            sent = reply.usage.prompt_tokens
    assert sent > 6_000


@pytest.mark.moves_prefix(reason="the library grows in the system message")
def test_library_conversation_reads_up_to_newest_entry(converse: Converse) -> None:
    wire = WIRES[0]
    chat = converse(system="Be terse. " * 600, layout="library")
    reads = []
    with wire.serve() as server:
        for number in range(4):
            turn = chat.ask(f"Question {number}?", attach=[Note(path=f"{number}.md", text=note(str(number), 6_000))])
            request = ModelRequest(model=wire.model, messages=turn.messages, conversation="harbour")
            reply = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), request)
            chat.reply(reply.text)
            reads.append(reply.usage.read or 0)
    assert reads[0] == 0
    assert reads == sorted(reads)
    assert reads[3] > reads[2] + 1_000
