"""The golden cases: each conversation in every layout and both carry-forward modes, and how one is run.

Beside them the messages of the naive layout, which the ledger compares each turn with.
"""

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from lamella.archive.transcript import Transcript
from lamella.cli import main
from lamella.core.ledger.entry import build_naive_messages
from lamella.wiring.transcripts import replay_transcript

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
CONVERSATIONS = (
    "walkthrough",
    "growing",
    "folded",
    "web",
    "papers",
    "house",
    "tools",
    "pictures",
    "embeds",
    "heavy",
    "dataview",
    "documents",
    "kinds",
)
# The two that follow from the turns alone; where prices decide, the prices of the model have a say.
LAYOUTS = ("library", "in_place")
EVERY_LAYOUT = (*LAYOUTS, "auto")
CARRY_FORWARD = ("full", "preview")
OUTPUTS = {"json": "--json", "txt": "--messages"}
NAIVE = "naive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One conversation under one pair of settings."""

    conversation: str
    layout: str
    carry_forward: str

    def __str__(self) -> str:
        return f"{self.conversation}.{self.layout}.{self.carry_forward}"

    def expected(self, ending: str) -> Path:
        return EXPECTED / f"{self}.{ending}"


def every_case() -> Iterator[Case]:
    for conversation in CONVERSATIONS:
        for layout in EVERY_LAYOUT:
            for carry_forward in CARRY_FORWARD:
                yield Case(conversation=conversation, layout=layout, carry_forward=carry_forward)


def run_case(case: Case, option: str) -> str:
    """What ``lamella replay`` prints for the case."""
    transcript = json.loads((HERE / f"{case.conversation}.json").read_text(encoding="utf-8"))
    transcript |= {"layout": case.layout, "carry_forward": case.carry_forward, "vault": str(HERE / "vault")}
    out = StringIO()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "transcript.json"
        file.write_text(json.dumps(transcript), encoding="utf-8")
        with redirect_stdout(out):
            code = main(["replay", str(file), option])
    assert code == 0, f"{case} ended with exit code {code}"
    return out.getvalue()


def naive_file(conversation: str) -> Path:
    """The messages of an application that glues attachments into each message, whatever the layout."""
    return EXPECTED / f"{conversation}.{NAIVE}.txt"


def run_naive(conversation: str) -> str:
    """What such an application sends on each turn, as ``--messages`` would print it."""
    transcript = Transcript.model_validate_json((HERE / f"{conversation}.json").read_bytes())
    lines: list[str] = []
    for turn in replay_transcript(transcript, overrides={"layout": "in_place"}, base_folder=HERE):
        lines.append(f"═══ turn {turn.number}")
        for message in build_naive_messages(turn.envelope.prompt):
            calls = [f"{call.name}({call.arguments})" for call in message.calls]
            pictures = [f"[{image.media_type}, {image.width}x{image.height}]" for image in message.images]
            lines += [f"─── {message.role}", message.text, *calls, *pictures]
    return "\n".join(lines) + "\n"
