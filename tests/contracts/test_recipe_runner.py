"""The recipe for a runner, followed in a copy of the source."""

from pathlib import Path

from tests.contracts.recipes import SourceCopy

RUNNER = '''"""The ``terse`` runner: the same answer in few words."""

from collections.abc import AsyncGenerator

from lamella.conversation.runner_context import RunRequest, execute_run
from lamella.conversation.turn_runner import TurnEvent
from lamella.core.values import replace


def run_terse(run_request: RunRequest) -> AsyncGenerator[TurnEvent, None]:
    """Ask for few words; a question that is resumed was asked so already."""
    asked = run_request.turn_request
    if asked is None:
        return execute_run(run_request)
    brief = replace(asked, text=f"{asked.text} In few words.")
    return execute_run(replace(run_request, turn_request=brief))
'''
ASKING = """
import asyncio
import lamella
from lamella.testing import ScriptedReply, ScriptedProvider

async def ask(chat):
    return [event async for event in chat.send("Why?", runner="terse")]

engine = lamella.open("memory:", model="scripted:x", provider=ScriptedProvider(ScriptedReply(text="So.")))
chat = engine.chat("one", compaction={"runners": {"terse": {"steps": ["chitchat"]}}})
first, *_ = asyncio.run(ask(chat))
print(first.turn.messages[-1].text, chat.turns()[-1].reply.text)
"""


def test_runner_recipe_gives_a_runner_that_answers(tmp_path: Path) -> None:
    copy = SourceCopy(tmp_path)
    copy.create("runners/terse.py", RUNNER)
    imported = "from lamella.runners.terse import run_terse\n"
    copy.insert("runners/registry.py", imported, before="from lamella.runners.vault_qa ")
    copy.insert("runners/registry.py", '    "terse": run_terse,\n', before="}")
    assert copy.run(ASKING) == "Why? In few words. So.\n"
    copy.check("Add a runner", name="terse")
