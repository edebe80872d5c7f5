"""The part of each layer that a cache serves: tokens are counted in sending order."""

from tests.unit.core.compaction.stories import QUARTERS, Story, attaching, note

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import make_image_artifact, make_image_data, make_tool_definition
from lamella.core.budget import count_tools_tokens
from lamella.core.ledger.entry import cached_tokens_by_layer
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.values import replace

NOTE = note("a.md", "text " * 40)
PICTURE = make_image_artifact(make_image_data(b"x", media_type="image/png", width=4, height=5), title="plan")
SYSTEM = SystemParts(base="Be brief.")


def test_cache_covers_layers_in_sending_order() -> None:
    turn = replace(attaching(NOTE, PICTURE), system=SYSTEM)
    envelope = Story().say("one", "yes, indeed", turn).ask(Turn(text="two"))
    base, block = QUARTERS.count("Be brief."), QUARTERS.count(render_block(NOTE))
    _, asked, replied, _ = envelope.messages

    def covered(read: int, *, per_message: int = 0) -> dict[str, int]:
        found = cached_tokens_by_layer(envelope, read, replace(QUARTERS, tokens_per_message=per_message))
        assert len(found) == 5
        return {layer.value: tokens for layer, tokens in found.items() if tokens}

    assert covered(0) == {}
    assert covered(1) == {"L1_SYSTEM": 1}
    assert covered(base) == {"L1_SYSTEM": base}
    assert covered(base + 1) == {"L1_SYSTEM": base, "L2_PREVIOUS": 1}
    assert covered(base + block) == {"L1_SYSTEM": base, "L2_PREVIOUS": block}
    assert covered(base + block + 1) == {"L1_SYSTEM": base, "L2_PREVIOUS": block, "L4_STRIP": 1}
    # The picture of the earlier message belongs to no layer, and the reply begins behind it.
    picture = 4 * 5
    typed = {"L1_SYSTEM": base, "L2_PREVIOUS": block, "L4_STRIP": 1}
    assert covered(base + asked.tokens + picture) == typed
    assert covered(base + asked.tokens + picture + 2) == {**typed, "L4_STRIP": 3}
    whole = {**typed, "L4_STRIP": 1 + replied.tokens}
    assert covered(base + asked.tokens + picture + replied.tokens) == whole
    assert covered(base + asked.tokens + picture + replied.tokens + 1) == {**whole, "L5_USER": 1}
    assert covered(base + 7, per_message=7) == {"L1_SYSTEM": base}
    assert covered(base + 8, per_message=7) == {"L1_SYSTEM": base, "L2_PREVIOUS": 1}


def test_tool_definitions_precede_layers() -> None:
    tool = make_tool_definition("search", description="", parameters={})
    envelope = Story().ask(Turn(text="one", tools=(tool,), system=SYSTEM))
    armed = count_tools_tokens([tool], QUARTERS.count)
    assert not any(cached_tokens_by_layer(envelope, armed, QUARTERS).values())
    assert sum(cached_tokens_by_layer(envelope, armed + 1, QUARTERS).values()) == 1
