"""Golden files of printed requests. After an intended change: ``python -m tests.journeys.requests``."""

import json
from pathlib import Path

from tests.journeys.running import Ran, run

GOLDEN = Path(__file__).parent / "golden"
MODELS = {
    "anthropic": "claude-opus-5-5",
    "openai": "gpt-6-sol",
    "openai-responses": "gpt-6-sol",
    "gemini": "gemini-3.8-flash",
}
TRANSCRIPT = {
    "lamella": 1,
    "conversation": "harbour",
    "system": {"base": "You are terse.", "instructions": "Answer in one sentence. " * 60},
    "turns": [
        {
            "user": "When is high tide?",
            "at": "2026-11-15T10:00:00Z",
            "attach": [{"kind": "note", "path": "tides.md", "text": "High tide comes at noon. " * 80}],
            "tool_definitions": [
                {
                    "name": "search",
                    "description": "Search the notes.",
                    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
                }
            ],
            "reply": "At noon.",
        },
        {
            "user": "And low tide? Größe 海",
            "at": "2026-11-15T10:12:00Z",
            "attach": [{"kind": "note", "path": "moon.md", "text": "The moon draws the sea."}],
        },
        {"user": "Thanks.", "at": "2026-11-15T10:13:00Z"},
    ],
}


def printed(folder: Path, provider: str, *options: str, transcript: object = TRANSCRIPT) -> Ran:
    """What the command prints for a transcript."""
    file = folder / "transcript.json"
    file.write_text(json.dumps(transcript), encoding="utf-8")
    return run("request", str(file), "--provider", provider, *options)


def golden_path(provider: str) -> Path:
    return GOLDEN / f"request.{provider}.json"


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for provider, model in MODELS.items():
        ran = printed(GOLDEN, provider, "--turn", "2", "--model", model)
        golden_path(provider).write_text(ran.out, encoding="utf-8")
    (GOLDEN / "transcript.json").unlink()


if __name__ == "__main__":
    main()
