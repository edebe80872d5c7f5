"""The recipes for a compaction step and for an invariant, followed in a copy of the source."""

from pathlib import Path

import pytest
from tests.contracts.recipes import SourceCopy

STEP = '''def drop_asides(draft: PromptDraft) -> CompactionStep | None:
    """Remove every turn that was asked in brackets, with its reply."""
    turns = [turn for turn in draft.removable_turns if turn.question.segment.text.startswith("(")]
    removed = tuple(message.segment.id for turn in turns for message in (turn.question, turn.reply))
    return CompactionStep(name=CompactionStepName.ASIDES, removed=removed) if removed else None


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
assert (turn.prefix_change.cause, turn.prefix_change.segment) == ("compacted", "asides"), turn.prefix_change
chat.reply("Because.")
assert chat.recall("forgetting")[0].passage.text.startswith("(By the way")
chat.undo()
assert any("By the way" in message.text for message in chat.ask("So?").messages)

# In a store: a new process applies the receipt, and can undo it.
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
INVARIANT = """def _check_quiet(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    return [f"{segment.id} is in capitals" for segment in envelope.segments(LayerId.L5) if segment.text.isupper()]


QUIET = PromptInvariant(name="quiet", statement="No question is in capitals.", check=_check_quiet)


"""
SHOUTING = """
from lamella import Conversation, InvariantViolatedError

chat = Conversation()
chat.ask("Where?")
try:
    chat.ask("WHERE?")
except InvariantViolatedError as error:
    print(error.message)
"""


@pytest.fixture
def copy(tmp_path: Path) -> SourceCopy:
    return SourceCopy(tmp_path)


def test_step_recipe_gives_a_step_that_compacts_reloads_and_undoes(copy: SourceCopy) -> None:
    steps = "core/compaction/steps.py"
    copy.insert("core/log/receipts.py", '    ASIDES = "asides"\n', before="    PREVIEW = ")
    copy.insert(steps, STEP, before="STEP_FUNCTIONS: ")
    copy.insert(steps, "    CompactionStepName.ASIDES: drop_asides,\n", before="    CompactionStepName.PREVIEW: ")
    assert copy.run(SHRINKING) == "done\n"
    copy.check("Add a compaction step")


def test_invariant_recipe_gives_an_invariant_that_is_checked(copy: SourceCopy) -> None:
    path, table = "core/prompt/invariants.py", "INVARIANTS: tuple[PromptInvariant, ...] = (\n"
    copy.replace(path, table, f"{INVARIANT}{table}    QUIET,\n")
    assert "quiet" in copy.run(SHOUTING)
    copy.check("Add an invariant")
