"""The recipe for a runner, followed in a copy of the source."""

from pathlib import Path

from tests.contracts.recipes import SourceCopy, named_files

RUNNER = '''"""``terse``: the same answer, asked for in few words."""

from collections.abc import AsyncGenerator

from lamella.core.values import replace
from lamella.engine.sending.job import Job, carry_out
from lamella.engine.sending.events import Event


def run_terse(job: Job) -> AsyncGenerator[Event, None]:
    """Ask for few words; a turn that waits was asked so already."""
    if job.asked is None:
        return carry_out(job)
    brief = replace(job.asked, text=f"{job.asked.text} In few words.")
    return carry_out(replace(job, asked=brief))
'''
ASKING = """
import asyncio
import lamella
from lamella.testing import Line, ScriptedProvider

async def ask(chat):
    return [event async for event in chat.send("Why?", runner="terse")]

engine = lamella.open("memory:", model="scripted:x", provider=ScriptedProvider(Line(text="So.")))
chat = engine.chat("one", compaction={"runners": {"terse": {"steps": ["chitchat"]}}})
first, *_ = asyncio.run(ask(chat))
print(first.turn.messages[-1].text, chat.turns()[-1].reply.text)
"""


def test_a_runner_is_a_file_and_a_row(tmp_path: Path) -> None:
    copy = SourceCopy(tmp_path)
    copy.add("runners/terse.py", RUNNER)
    imported = "from lamella.runners.terse import run_terse\n"
    copy.put("runners/registry.py", imported + "\n", before="RUNNERS: ")
    copy.put("runners/registry.py", '    "terse": run_terse,\n', before="}")
    assert copy.run(ASKING) == "Why? In few words. So.\n"
    assert copy.changed() == sorted([*named_files("A runner"), "runners/terse.py"])
    assert len(copy.changed()) <= 3
