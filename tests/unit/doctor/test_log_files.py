"""Logs of real programs are read, and damaged logs are counted: never a traceback."""

import gzip
import io
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import monotonic

import pytest
from tests.planted_logs import make_log

from lamella.doctor.analysis import Diagnosis, Examination
from lamella.doctor.calls import LoggedCall
from lamella.doctor.log_files import LogReader, list_log_files
from lamella.errors import SourceNotFoundError
from lamella.wiring import read_services
from lamella.wiring.doctor import build_knowledge

RECORDED = Path("tests/clients/recorded_sessions")
KNOWLEDGE = build_knowledge(read_services())


def read_calls(data: bytes | str) -> tuple[list[LoggedCall], LogReader]:
    reader = LogReader()
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return list(reader.read_stream(stream, name="a log")), reader


def examine(calls: Sequence[LoggedCall]) -> Diagnosis:
    examination = Examination(KNOWLEDGE)
    for call in calls:
        examination.add(call)
    return examination.finish()


@pytest.mark.parametrize(
    ("name", "log_format", "requests", "cached"),
    [
        ("claude-code.jsonl", "Claude Code session", 2, 160),
        ("codex.jsonl", "Codex rollout", 2, 160),
        ("opencode.json", "opencode session", 2, 160),
        ("aider.history.md", "aider history", 2, 0),
        ("aider-requests.log", "aider request log", 1, 0),
        ("litellm.jsonl", "LiteLLM", 2, 160),
        ("pydantic-ai-otlp.json", "OpenTelemetry", 2, 160),
        ("pydantic-ai-requests.jsonl", "requests", 2, 0),
        ("langchain-requests.jsonl", "requests", 2, 0),
    ],
)
def test_files_of_real_programs_are_read(name: str, log_format: str, requests: int, cached: int) -> None:
    reader = LogReader()
    calls = list(reader.read([RECORDED / name]))
    diagnosis = examine(calls)
    assert diagnosis.formats == {log_format: requests}
    assert (reader.unread, diagnosis.reached) == (0, cached)
    assert diagnosis.findings == []
    assert "tide" in json.dumps(calls[-1].body)


def test_second_question_of_an_agent_continues_the_first() -> None:
    for name in ("claude-code.jsonl", "codex.jsonl", "opencode.json", "litellm.jsonl", "pydantic-ai-otlp.json"):
        calls = list(LogReader().read([RECORDED / name]))
        assert examine(calls).conversation_count == 1, name
        assert "And when is low tide" in json.dumps(calls[1].body), name
        assert "And when is low tide" not in json.dumps(calls[0].body), name


def test_database_of_opencode_is_read_like_its_export(tmp_path: Path) -> None:
    exported = json.loads((RECORDED / "opencode.json").read_text(encoding="utf-8"))
    path = tmp_path / "opencode.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE message (id, session_id, time_created, time_updated, data)")
    connection.execute("CREATE TABLE part (id, message_id, session_id, time_created, time_updated, data)")
    for at, message in enumerate(exported["messages"]):
        row = (message["info"]["id"], "s1", at, at, json.dumps(message["info"]))
        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
        for part in message["parts"]:
            connection.execute(
                "INSERT INTO part VALUES (?, ?, 's1', ?, ?, ?)", (part["id"], row[0], at, at, json.dumps(part))
            )
    connection.commit()
    connection.close()
    from_database = list(LogReader().read([path]))
    from_export = list(LogReader().read([RECORDED / "opencode.json"]))
    assert [one.body for one in from_database] == [one.body for one in from_export]
    assert [one.usage for one in from_database] == [one.usage for one in from_export]


def make_har(lines: Sequence[str]) -> str:
    entries = []
    for line in lines:
        one = json.loads(line)
        entries.append(
            {
                "startedDateTime": one["timestamp"],
                "request": {
                    "method": "POST", "url": "https://api.openai.com/v1/chat/completions",
                    "postData": {"mimeType": "application/json", "text": json.dumps(one["request"])},
                },
                "response": {"status": 200, "content": {"text": json.dumps(one["response"])}},
            }
        )  # fmt: skip
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "a proxy"}, "entries": entries}}, indent=1)


def make_lhar(lines: Sequence[str]) -> str:
    entries = []
    for number, line in enumerate(lines):
        one = json.loads(line)
        raw = {"request_body": one["request"], "response_body": one["response"]}
        entries.append(
            {
                "type": "entry", "id": str(number), "trace_id": "t1", "timestamp": one["timestamp"], "gen_ai": {},
                "http": {"status_code": 200, "url": None, "api_format": "chat"}, "raw": raw,
            }
        )  # fmt: skip
    return json.dumps({"lhar": {"version": "0.1", "sessions": [], "entries": entries}})


def make_langfuse(lines: Sequence[str]) -> str:
    observations = []
    for number, line in enumerate(lines):
        one = json.loads(line)
        usage = one["response"]["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        observations.append(
            {
                "id": str(number), "traceId": f"t{number}", "type": "GENERATION", "startTime": one["timestamp"],
                "model": one["request"]["model"], "modelParameters": {},
                "input": {name: one["request"][name] for name in ("messages", "tools")},
                "output": one["response"]["choices"][0]["message"],
                "usageDetails": {
                    "input": usage["prompt_tokens"] - cached, "input_cached_tokens": cached, "output": 1
                },
            }
        )  # fmt: skip
    return json.dumps(observations)


def make_pairs(lines: Sequence[str]) -> str:
    records = [json.loads(line) for line in lines]
    return "\n".join(json.dumps(one[name]) for one in records for name in ("request", "response"))


def make_streams(lines: Sequence[str]) -> str:
    """Lines whose response is a stream of events as text."""
    records = [json.loads(line) for line in lines]
    for one in records:
        chunk = {"choices": [{"delta": {"content": one["response"]["choices"][0]["message"]["content"]}}]}
        usage = {"choices": [], "usage": one["response"]["usage"]}
        one["response"] = f"data: {json.dumps(chunk)}\n\ndata: {json.dumps(usage)}\n\ndata: [DONE]\n\n"
    return "\n".join(map(json.dumps, records))


FORMATS = {"HAR": make_har, "LHAR": make_lhar, "Langfuse": make_langfuse, "pairs": make_pairs, "streams": make_streams}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_findings_as_request_lines(name: str) -> None:
    lines = make_log(11, "tools_reordered", "chat")
    expected = examine(read_calls("\n".join(lines))[0])
    calls, reader = read_calls(FORMATS[name](lines))
    found = examine(calls)
    assert reader.unread == 0
    assert [(one.cause, one.requests) for one in found.findings] == [
        (one.cause, one.requests) for one in expected.findings
    ]
    assert (found.input, found.reached, found.conversation_count) == (expected.input, expected.reached, 1)


def test_compressed_log_is_read() -> None:
    lines = "\n".join(make_log(11, None, "chat"))
    assert len(read_calls(gzip.compress(lines.encode()))[0]) == len(read_calls(lines)[0])


def test_unknown_lines_are_counted_and_shown() -> None:
    lines = make_log(11, None, "chat")
    calls, reader = read_calls("\n".join(["starting up", *lines, '{"level": "info", "text": "done"}']))
    assert len(calls) == len(lines)
    assert reader.unread == 2
    assert reader.examples == ["starting up", '{"level": "info", "text": "done"}']


@pytest.mark.parametrize("name", ["HAR", "LHAR", "Langfuse"])
def test_document_that_was_cut_off_gives_the_calls_before_the_cut(name: str) -> None:
    lines = make_log(11, None, "chat")
    whole = FORMATS[name](lines)
    calls, reader = read_calls(whole[: len(whole) * 2 // 3])
    assert 0 < len(calls) < len(lines)
    assert reader.unread == 1


def test_folder_is_read_and_an_empty_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError):
        list_log_files([tmp_path])
    with pytest.raises(SourceNotFoundError):
        list_log_files([tmp_path / "gone.jsonl"])
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "a.jsonl").write_text("\n".join(make_log(11, None, "chat")), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no log", encoding="utf-8")
    assert [path.name for path in list_log_files([tmp_path])] == ["a.jsonl"]


def mutate(data: bytes, random: Random) -> bytes:
    """Return data with some bytes changed, cut, repeated or moved."""
    made = bytearray(data)
    for _ in range(random.randint(1, 6)):
        at, other = sorted((random.randrange(len(made) or 1), random.randrange(len(made) or 1)))
        match random.randrange(7):
            case 0:
                made[at:other] = b""
            case 1:
                made[at : at + 1] = bytes([random.randrange(256)])
            case 2:
                made[at:at] = made[at : min(other, at + 2_000)]
            case 3:
                made[at:at] = random.choice((b"null", b"{", b"]", b'"', b"[[", b"-1e999", b"\x00", b"\xff\xfe", b"\n"))
            case 4:
                del made[other:]
            case 5:
                word = random.choice((b'"messages"', b'"usage"', b'"content"', b'"role"', b'"input"', b'"type"'))
                made = bytearray(bytes(made).replace(word, random.choice((b'"x"', b'"input"', b'"type"')), 3))
            case _:
                number = random.choice((b"null", b"[]", b"{}", b"1e400", b"-5", b'"7"', b"true"))
                found = bytes(made).find(b": ", at)
                if found >= 0:
                    made[found + 2 : found + 2] = number + b", "
    return bytes(made)


SEED_FILES = [
    *(path.read_bytes() for path in sorted(RECORDED.iterdir())),
    *(make([*make_log(5, "time_in_prompt", "chat")][:3]).encode() for make in FORMATS.values()),
    "\n".join(make_log(5, "summary", "messages")[:4]).encode(),
    "\n".join(make_log(5, "tool_result_cleared", "responses")[:4]).encode(),
]


@pytest.mark.parametrize("seed", range(10))
def test_damaged_logs_are_read_as_far_as_they_can_be(seed: int) -> None:
    random = Random(seed)
    for _ in range(100):
        damaged = mutate(random.choice(SEED_FILES), random)
        calls, _ = read_calls(damaged)
        diagnosis = examine(calls)
        assert diagnosis.requests == len(calls)
        assert 0 <= diagnosis.reached <= diagnosis.reachable


def test_damaged_gzip_files_are_counted() -> None:
    lines = make_log(31, None, "chat")
    for text in ("\n".join(lines), f"[{','.join(lines)}]"):
        whole = gzip.compress(text.encode())
        for at in (10, 12, len(whole) // 2, len(whole) - 6):
            for damage in (b"\xff" * 6, b"\x00" * 6):
                _, reader = read_calls(whole[:at] + damage + whole[at + 6 :])
                assert reader.unread >= 1
                assert any("damaged" in one for one in reader.examples)


def test_lone_surrogates_are_replaced() -> None:
    body = '{"model": "gpt-5", "messages": [{"role": "user", "content": "caf\\ud83d and \\udc00 \\ud83d\\ude00"}]}'
    for text in (f'{{"request": {body}}}', f'[{{"request": {body}}}]'):
        calls, reader = read_calls(text)
        assert (len(calls), reader.unread) == (1, 0)
        assert calls[0].body["messages"][0]["content"] == "caf? and ? \U0001f600"
        assert examine(calls).requests == 1


def test_deeply_nested_document_is_given_up_soon() -> None:
    start = monotonic()
    calls, reader = read_calls("[" * 400_000)
    assert (calls, reader.unread) == ([], 1)
    assert monotonic() - start < 10
