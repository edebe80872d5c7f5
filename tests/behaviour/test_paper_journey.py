"""A paper from its first idea to its title, in a window that is too small for it: thirteen stages, with two rewinds.

Every step of the chain of ``seed-paper`` is used, and what was decided in the first stage is in the last prompt.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from tests.faithful_summaries import faithful_summary
from tests.runner_provider import Speaker

import lamella
from lamella import Conversation, Engine, Message, Turn
from lamella.conversation.stages import list_branch_stages_and_messages

MODEL = "anthropic:claude-opus-5-5"
WINDOW = 7_500
FACTS = ("K-37", "u_77", "2.451 responden", "kafein 200 mg")
DECISION = f"Kopi dan tidur mahasiswa: {', '.join(FACTS)}."
# What is asked in a stage, and how long each answer is; acknowledgements say nothing that would be missed.
TALK = (("Apa yang harus ditulis?", 30), ("oke sip", 10), ("Bagaimana dengan bagian kedua?", 60), ("Lalu?", 40))
# One stage that is long by itself, and one that begins with much to read.
MORE = {"tinjauan_literatur": [(f"Dan sumber {number}?", 70) for number in range(14)]}
READ = {"hasil": "Ini datanya. " + "Responden menjawab ya, lalu tidak. " * 330 + "Apa temuannya?"}
GOES_BACK = {"pendahuluan": "outline", "kesimpulan": "hasil"}


class Scribe:
    """Writes the same summary of everything, and keeps what it was asked."""

    name = "scribe"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        del max_tokens
        self.asked.append(messages[-1].text)
        return faithful_summary(messages)


class Paper:
    """The journey: every answer is scripted, and so is every summary."""

    def __init__(self, layout: str) -> None:
        self.speaker = Speaker()
        self.scribe = Scribe()
        self.engine: Engine = lamella.open(
            "sqlite://",
            provider=self.speaker,  # type: ignore[arg-type]
            model=MODEL,
            summarizer=self.scribe,
        )
        self.chat: Conversation = self.engine.chat(
            "kopi", profile="seed-paper", window=WINDOW, layout=layout, runner="staged"
        )
        self.turns: list[Turn] = []
        self.stages: list[str | None] = []
        self.taken: list[tuple[str, str]] = []

    def say(self, text: str, words: int) -> None:
        current = self.list_current()
        self.speaker.lines.append(f"Jawaban {len(self.turns)}. " + "uraian panjang tentang hal itu " * words)

        async def main() -> None:
            async for event in self.chat.send(text, max_tokens=200):
                if event.kind == "envelope" and event.turn is not None:
                    self.turns.append(event.turn)

        asyncio.run(main())
        self.check(self.turns[-1])
        receipt = self.turns[-1].compaction
        for step in () if receipt is None else receipt.steps:
            self.taken += [(step.name.value, name) for name in step.removed if name in current]

    def list_current(self) -> frozenset[str]:
        """The messages of the stage that is worked on."""
        conversation_log = self.chat
        session = conversation_log.workflow_session
        return (
            frozenset(list_branch_stages_and_messages(conversation_log._log)[1][session.stage_start :])
            if session is not None
            else frozenset()
        )

    def check(self, turn: Turn) -> None:
        """What holds for every request: it fits, the digest is in it once, and nothing else tells of what left."""
        work = self.chat.workflow
        assert work is not None
        sent = "\n".join(message.text for message in turn.messages)
        assert turn.tokens.total <= 0.95 * WINDOW
        assert sent.count("\n## Keputusan\n") == (1 if any(one.digest for one in work.stages) else 0)
        assert "<stage_digest>" not in sent
        assert [one.digest for one in work.stages if one.digest and sent.count(one.digest) != 1] == []

    def finish(self) -> None:
        """The current stage, talked about, written down, submitted and approved."""
        work = self.chat.workflow
        assert work is not None
        stage = next(one for one in work.stages if one.id == work.current)
        if stage.id in READ:
            self.say(READ[stage.id], 10)
        for text, words in (*TALK, *MORE.get(stage.id, ())):
            self.say(f"{text} ({stage.id})" if "?" in text else text, words)
        fields: dict[str, object] = dict.fromkeys(stage.required, f"Isi {stage.id}: " + "isi yang rinci " * 30)
        fields["references"] = [{"title": f"Sumber {stage.id} {n}", "url": f"https://s.org/{n}"} for n in range(3)]
        if stage.id == "judul":
            fields["judulTerpilih"] = "Kopi, Kafein, dan Tidur"
        self.chat.write_stage(fields)
        self.chat.submit_stage()
        said = DECISION if stage.id == "gagasan" else f"Keputusan untuk {stage.id}, percobaan {stage.attempt}."
        self.chat.approve_stage(said)
        # Opened again it goes on where it was.
        self.chat = self.engine.chat("kopi")
        self.stages.append(stage.id)

    def walk(self) -> None:
        self.chat.start_workflow("paper", language="id")
        back = dict(GOES_BACK)
        while (work := self.chat.workflow) is not None and work.current is not None:
            if work.current in back:
                self.say("Ada yang salah di tahap sebelumnya?", 40)
                self.chat.rewind_to_stage(back.pop(work.current))
                continue
            self.finish()

    def count_steps(self) -> Counter[str]:
        """How often each step was used on the way."""
        receipts = [turn.compaction for turn in self.turns if turn.compaction is not None]
        return Counter(step.name.value for receipt in receipts for step in receipt.steps)


@pytest.fixture(scope="module", params=["library", "in_place", "auto"])
def paper(request: pytest.FixtureRequest) -> Iterator[Paper]:
    journey = Paper(request.param)
    journey.walk()
    yield journey
    journey.engine.close()


def test_all_thirteen_stages_are_approved_and_revisited_ones_twice(paper: Paper) -> None:
    work = paper.chat.workflow
    assert work is not None
    assert (work.current, work.status) == (None, "approved")
    assert {one.status for one in work.stages} == {"approved"}
    again = {one.id for one in work.stages if one.attempt == 2}
    assert again == {"outline", "abstrak", "hasil", "diskusi"}
    assert sum(line.superseded for line in work.digest) == 4
    assert len(paper.stages) == 13 + 4


def test_every_step_of_the_chain_was_used(paper: Paper) -> None:
    assert set(paper.count_steps()) == {"chitchat", "oldest_stages", "summary", "recent_stages", "expendable"}


def test_first_stage_decisions_are_in_last_stage_prompt(paper: Paper) -> None:
    last = paper.turns[-1]
    assert "Tahap 13 dari 13" in last.messages[0].text
    assert [fact for fact in FACTS if last.messages[0].text.count(fact) != 1] == []
    # Not one message of that stage is left.
    assert not any("(gagasan)" in message.text for message in last.messages[1:])


def test_active_stage_loses_only_acknowledgements_and_summarized_turns(paper: Paper) -> None:
    assert {step for step, _ in paper.taken} <= {"chitchat", "summary"}
    assert "summary" in {step for step, _ in paper.taken}


def test_finished_paper_has_each_source_once(paper: Paper) -> None:
    text = paper.chat.export_approved_stages()
    assert text.startswith("# Kopi, Kafein, dan Tidur\n")
    assert text.count("https://s.org/1") == 1
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Abstrak",
        "## Pendahuluan",
        "## Tinjauan Literatur",
        "## Metodologi",
        "## Hasil Penelitian",
        "## Diskusi",
        "## Kesimpulan",
        "## Daftar Pustaka",
    ]
