"""The recipes for a step of the chain and for a law, followed in a copy of the source."""

from pathlib import Path

import pytest
from tests.contracts.recipes import SourceCopy, named_files

STEP = '''"""Asides: turns in brackets, which people do not want answered again."""

from lamella.core.compaction.draft import Draft
from lamella.core.log.receipt import Step, StepName


def cut_asides(draft: Draft) -> Step | None:
    """Every turn that was asked in brackets, with its answer."""
    turns = [exchange for exchange in draft.free if exchange.user.text.startswith("(")]
    removed = tuple(said.id for exchange in turns for said in exchange.said)
    return Step(name=StepName.ASIDES, removed=removed) if removed else None
'''
SHRINKING = """
import lamella
from lamella import Conversation

def talk(chat):
    for text in ("Where?", "(By the way, what day is it?" + " I keep forgetting." * 20 + ")", "When?"):
        chat.ask(text)
        chat.reply("In the garden.")

chat = Conversation(layout="in_place", compaction={"steps": ["asides"]})
talk(chat)
before = chat.preview("Why?").messages
planned = chat.plan(to=0.0001)
assert [step.name for step in planned.receipt.steps] == ["asides"], planned.receipt
assert planned.after.total < planned.before.total
chat.commit(planned)
turn = chat.ask("Why?")
assert not any("By the way" in message.text for message in turn.messages)
assert (turn.prefix.cause, turn.prefix.segment) == ("compacted", "asides"), turn.prefix
chat.reply("Because.")
assert chat.recall("forgetting")[0].passage.text.startswith("(By the way")
chat.undo()
assert any("By the way" in message.text for message in chat.ask("So?").messages)

# In a store: the receipt is an event that a new process understands, and its undo another.
with lamella.open("sqlite:///one.db") as engine:
    chat = engine.chat("garden", layout="in_place", compaction={"steps": ["asides"]})
    talk(chat)
    chat.compact(to=0.0001)
with lamella.open("sqlite:///one.db") as engine:
    chat = engine.chat("garden")
    assert not any("By the way" in message.text for message in chat.preview("Why?").messages)
    chat.undo()
    assert chat.preview("Why?").messages == before
    assert list(engine.verify()) == []
print("done")
"""
LAW = """def _check_quiet(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    return [f"{segment.id} shouts" for segment in envelope.segments(LayerId.L5) if segment.text.isupper()]


QUIET = Law(name="quiet", statement="Nobody shouts.", check=_check_quiet)


"""
SHOUTING = """
from lamella import Conversation, LawBrokenError

chat = Conversation()
chat.ask("Where?")
try:
    chat.ask("WHERE?")
except LawBrokenError as error:
    print(error.message)
"""


@pytest.fixture
def copy(tmp_path: Path) -> SourceCopy:
    return SourceCopy(tmp_path)


def test_a_step_is_a_member_a_function_and_a_row(copy: SourceCopy) -> None:
    steps = "core/compaction/steps/__init__.py"
    copy.put("core/log/receipt.py", '    ASIDES = "asides"\n', before="    PREVIEW = ")
    copy.add("core/compaction/steps/asides.py", STEP)
    taken = "from lamella.core.compaction.steps.asides import cut_asides\n"
    copy.put(steps, taken, before="from lamella.core.compaction.steps.library ")
    copy.put(steps, "    StepName.ASIDES: cut_asides,\n", before="    StepName.PREVIEW: ")
    assert copy.run(SHRINKING) == "done\n"
    assert copy.changed() == sorted([*named_files("A step of the chain"), "core/compaction/steps/asides.py"])
    assert len(copy.changed()) <= 3


def test_a_law_is_a_value_and_its_place_among_the_others(copy: SourceCopy) -> None:
    copy.put("core/prompt/laws.py", LAW, before="LAWS: ")
    copy.put("core/prompt/laws.py", "    QUIET,\n", before="    LAYER_ORDER_LAW,")
    assert "quiet" in copy.run(SHOUTING)
    assert copy.changed() == named_files("A law")
