"""Observability: metrics, one log line per request and answer, and spans; never a text."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.server.running import RunningServer, running
from tests.waiting import wait_until

from lamella import ToolCall
from lamella.core.messages import Usage
from lamella.server.observability import finish_answer_span, start_answer_span
from lamella.testing import ScriptedProvider, ScriptedReply

SECRET = "The heron's name is Ottokar."
USAGE = Usage(plain=20, read=80, write=5, output=7)
EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
        trace.set_tracer_provider(provider)
    lines = [ScriptedReply(text=f"{SECRET}\nForged line", usage=USAGE)] * 20
    with running("memory:", ScriptedProvider(*lines), serve={"preview": False}) as one:
        yield one


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """Every line that is written to the log of the server meanwhile."""
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in ("lamella.requests", "lamella.answers")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    yield told
    for logger in loggers:
        logger.removeHandler(handler)


def wait_for(lines: list[str], count: int) -> None:
    """A line is written once its answer is out, which the client may hear first."""
    wait_until(lambda: len(lines) >= count, f"{count} lines were written", interval=0.005)


def test_requests_and_answers_are_logged_on_one_line_without_text(server: RunningServer, lines: list[str]) -> None:
    key = server.begin("logged")
    server.ask(key, SECRET)
    wait_for(lines, 3)
    told = [json.loads(line) for line in lines]
    assert [one["at"] for one in told] == ["request", "answer", "request"]
    asked, answered = told[2], told[1]
    assert (asked["method"], asked["status"], asked["conversation"]) == ("POST", 200, key)
    assert asked["route"] == "/v1/conversations/{conversation}/messages"
    assert answered["tokens"] == {"plain": 20, "read": 80, "write": 5, "write_long": None, "output": 7}
    assert (answered["ended"], answered["length"]) == ("done", len(SECRET) + 12)
    assert not any("heron" in line or "\n" in line for line in lines)


def test_answer_preview_is_logged_if_enabled(lines: list[str]) -> None:
    long = f"{SECRET}\n" + "x" * 500
    with running("memory:", ScriptedProvider(long), serve={"preview": True}) as server:
        server.ask(server.begin("shown"), "Who?")
    (line,) = [line for line in lines if '"answer"' in line]
    assert "\n" not in line
    assert json.loads(line)["preview"] == long[:200]


@pytest.mark.parametrize("path", ["/v1/conversations/a%0d%0aForged: yes", "/v1/%1b[31mred", "/v1/conversations/%ff"])
def test_path_cannot_inject_log_lines_or_headers(server: RunningServer, lines: list[str], path: str) -> None:
    answer = server.client.get(path)
    assert answer.status_code == 404
    assert "forged" not in answer.headers
    wait_for(lines, 1)
    (line,) = lines
    assert line.isprintable()
    assert json.loads(line)["status"] == 404


def test_metrics_have_the_figures_of_requests_answers_and_turns(server: RunningServer) -> None:
    server.ask(server.begin("measured"), "Who?")
    told = server.client.get("/metrics").text
    for name in (
        'lamella_requests_total{method="POST",route="/v1/conversations/{conversation}/messages",status="200"}',
        'lamella_answers_total{ended="done"}',
        'lamella_tokens_total{kind="read"}',
        'lamella_prefix_total{cause="first_turn"}',
        "lamella_first_event_seconds_count",
        "lamella_dedup_ratio_count",
        'lamella_segments_total{layer="L5_USER"}',
        'lamella_layer_tokens_total{layer="L5_USER"}',
        'lamella_phase_seconds_count{phase="build"}',
        'lamella_phase_seconds_count{phase="store"}',
        "lamella_runs 0.0",
    ):
        assert name in told, name
    assert "heron" not in told


def test_answer_is_traced_with_tokens_and_without_text(server: RunningServer) -> None:
    key = server.begin("traced")
    EXPORTER.clear()
    server.ask(key, SECRET)
    (span,) = [span for span in EXPORTER.get_finished_spans() if span.name.startswith("chat")]
    assert span.name == "chat tides"
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.conversation.id"] == key
    assert (attributes["gen_ai.provider.name"], attributes["gen_ai.request.model"]) == ("scripted", "tides")
    assert attributes["gen_ai.usage.input_tokens"] == 105
    assert attributes["gen_ai.usage.cache_read.input_tokens"] == 80
    assert attributes["gen_ai.usage.cache_creation.input_tokens"] == 5
    assert attributes["gen_ai.usage.output_tokens"] == 7
    assert attributes["gen_ai.response.finish_reasons"] == ("end",)
    assert "heron" not in span.to_json()


def test_automatic_compaction_is_traced_and_counted(server: RunningServer) -> None:
    settings = {"window": 900, "reserve": 100, "summarizer": "off"}
    key = server.begin("compacted", settings=settings)
    EXPORTER.clear()
    for number in range(6):
        server.ask(key, f"Question {number}? " + "More of it, please. " * 25)
    spans = EXPORTER.get_finished_spans()
    inner = [span for span in spans if span.name == "lamella.compaction"]
    assert inner
    outer = {span.context.span_id for span in spans if span.name == "chat tides"}
    assert all(span.parent is not None and span.parent.span_id in outer for span in inner)
    attributes = inner[0].attributes or {}
    before, after = (attributes[f"lamella.compaction.tokens_{when}"] for when in ("before", "after"))
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert before > after
    assert "lamella_compactions_total{step=" in server.client.get("/metrics").text


def test_all_calls_of_turn_count_including_one_hour_writes(server: RunningServer, lines: list[str]) -> None:
    del server  # whose spans are collected
    call = ToolCall(id="c1", name="list_notes", arguments="{}")
    usage = Usage(plain=100, read=10, write=3, write_long=40, output=9)
    script = ScriptedProvider(
        ScriptedReply(text="Let me look.", calls=(call,), usage=usage), ScriptedReply(text="Three.", usage=usage)
    )
    EXPORTER.clear()
    with running("memory:", script, vault=Path("examples/vault")) as one:
        one.ask(one.begin("rounds"), "How many notes are there?", runner="agent")
    answers = [told for told in map(json.loads, lines) if told["at"] == "answer"]
    assert [told["tokens"] for told in answers] == [
        {"plain": 200, "read": 20, "write": 6, "write_long": 80, "output": 18}
    ]
    (span,) = [span for span in EXPORTER.get_finished_spans() if span.name == "chat tides"]
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.usage.input_tokens"] == 306
    assert attributes["gen_ai.usage.cache_creation.input_tokens"] == 86


def test_password_in_model_address_is_not_reported(server: RunningServer) -> None:
    del server  # whose spans are collected
    span = start_answer_span("key", "")
    EXPORTER.clear()
    finish_answer_span(span, {"model": "openai-compatible:http://me:hush@127.0.0.1:9/v1#spy"}, error=None)
    (told,) = EXPORTER.get_finished_spans()
    attributes = told.attributes or {}
    assert (attributes["gen_ai.provider.name"], attributes["gen_ai.request.model"]) == ("openai-compatible", "spy")
    assert "hush" not in told.to_json()


@pytest.mark.parametrize(
    ("runner", "turns"), [("chat", 28), ("plus", 28), ("vault_qa", 18), ("agent", 18), ("project", 28)]
)
def test_metrics_count_every_call_including_failed_ones(runner: str, turns: int) -> None:
    """Summaries of turns and of a plan, whoever answers: the figures are those of the ledger, to the last token."""
    script = ScriptedProvider(*[ScriptedReply(text="[1, 2] It is so. " + "because of that " * 80, usage=USAGE)] * 200)
    with running("memory:", script, vault=Path("examples/vault")) as server:
        settings = {"window": 6_000, "reserve": 0, "layout": "in_place", "compaction": {"steps": ["summary"]}}
        key = server.begin("summed", settings=settings)
        for number in range(turns):
            server.ask(key, f"What of tide {number}?", runner=runner)
        server.client.post(f"/v1/conversations/{key}/compactions/plan", json={"to": 0.3})
        told = server.client.get("/metrics").text
        figures = dict(line.rsplit(" ", 1) for line in told.splitlines() if not line.startswith("#"))
        asked = len(script.requests)
        rows = server.client.get(f"/v1/conversations/{key}/ledger").json()["turns"]
    purposes = [call["purpose"] for row in rows for call in row["calls"]]
    assert purposes.count("summary") > 1
    assert len(purposes) == asked
    assert float(figures['lamella_tokens_total{kind="read"}']) == 80 * asked
    assert float(figures['lamella_tokens_total{kind="output"}']) == 7 * asked
