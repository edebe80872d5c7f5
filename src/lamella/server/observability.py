"""Metrics, log lines and traces of the server.

``ServerMetrics`` has the counters of one process in Prometheus format, and ``TurnMetricsHandler`` fills them from log
records of turns and calls. ``log_request`` and ``log_answer`` write one line of ASCII JSON each, so that no value can
break out of its line. ``start_answer_span`` starts a span, named by OpenTelemetry's conventions for models.

OpenTelemetry's API comes with the web framework and does nothing by itself. Spans are collected if the program has set
up the SDK, or with the setting ``serve.traces`` and the extra ``telemetry``. Metrics and spans never contain a user's
text.
"""

import json
import logging
from collections.abc import Mapping, Sequence

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import Scope

from lamella.clocks import PHASES
from lamella.errors import ExtraNotInstalledError, install_hint

_SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_TOKEN_CLASSES = ("plain", "read", "write", "write_long", "output")
_PHASES = ("build", *(f"build_{phase}" for phase in PHASES), "first", "total")


class ServerMetrics:
    """The metrics of one process, listed in docs/reference/metrics-and-logs.md; no label contains a user's text."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "lamella_requests",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "lamella_request_seconds",
            "Seconds until the last byte of a response.",
            ["route"],
            buckets=_SECONDS_BUCKETS,
            registry=self.registry,
        )
        self._first = Histogram(
            "lamella_first_event_seconds",
            "Seconds until an answer begins.",
            buckets=_SECONDS_BUCKETS,
            registry=self.registry,
        )
        self.running = Gauge("lamella_runs", "Turns that are running.", registry=self.registry)
        self._answers = Counter("lamella_answers", "Answers by how they ended.", ["ended"], registry=self.registry)
        self._tokens = Counter("lamella_tokens", "Tokens by price class.", ["kind"], registry=self.registry)
        self._predicted = Counter("lamella_tokens_predicted", "Tokens predicted to be cached.", registry=self.registry)
        self._money = Counter(
            "lamella_cost_usd", "Cost of calls with a known price, in US dollars.", registry=self.registry
        )
        self._layers = Counter("lamella_layer_tokens", "Tokens sent, by layer.", ["layer"], registry=self.registry)
        self._phases = Histogram(
            "lamella_phase_seconds",
            "Seconds of turns by phase: build, its parts (read, plan, render, count, compaction, store), first, total.",
            ["phase"],
            buckets=_SECONDS_BUCKETS,
            registry=self.registry,
        )
        self._causes = Counter(
            "lamella_prefix", "Requests by the cause of their prefix change.", ["cause"], registry=self.registry
        )
        self._outcomes = Counter("lamella_cache", "Calls by cache outcome.", ["outcome"], registry=self.registry)
        self._compactions = Counter("lamella_compactions", "Compactions by step.", ["step"], registry=self.registry)
        self._segments = Counter("lamella_segments", "Segments sent, by layer.", ["layer"], registry=self.registry)
        self._dedup = Histogram(
            "lamella_dedup_ratio",
            "Share of attachments sent as references.",
            buckets=_SHARE_BUCKETS,
            registry=self.registry,
        )
        self._compacted = Histogram(
            "lamella_compacted_share",
            "Share of the context that was compacted.",
            buckets=_SHARE_BUCKETS,
            registry=self.registry,
        )
        self._check_failures = Counter(
            "lamella_compat_check_failures",
            "Requests of compatibility endpoints that were sent without references because their check failed.",
            registry=self.registry,
        )
        self._unparsed = Counter("lamella_unparsed", "Unknown blocks in prompts.", registry=self.registry)

    def record_request(self, *, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def record_first_token(self, seconds: float) -> None:
        self._first.observe(seconds)

    def record_turn(self, turn: Mapping[str, object]) -> None:
        """Record an answered turn, from the fields of its log line."""
        self._causes.labels(str(turn.get("cause"))).inc()
        self._outcomes.labels(str(turn.get("outcome"))).inc()
        self._predicted.inc(_to_float(turn.get("predicted")))
        self._dedup.observe(_to_float(turn.get("dedup_ratio")))
        self._compacted.observe(_to_float(turn.get("compacted_share")))
        self._unparsed.inc(_to_float(turn.get("unparsed")))
        for phase in _PHASES:
            if turn.get(phase) is not None:
                self._phases.labels(phase.removeprefix("build_")).observe(_to_float(turn[phase]))
        for name, value in turn.items():
            if name.startswith("segments_"):
                self._segments.labels(name.removeprefix("segments_")).inc(_to_float(value))

    def record_layer_tokens(self, by_layer: Mapping[str, int]) -> None:
        """Record the tokens of a request by layer."""
        for layer, tokens in by_layer.items():
            self._layers.labels(layer).inc(tokens)

    def record_compaction_steps(self, steps: Sequence[str]) -> None:
        """Record the steps of a compaction."""
        for step in steps:
            self._compactions.labels(step).inc()

    def record_answer(self, *, end_reason: str, usage: Mapping[str, int | None], cost: float | None) -> None:
        self._answers.labels(end_reason).inc()
        self.record_call({**usage, "cost": cost})

    def record_check_failure(self) -> None:
        """Record that a request was sent as its client wrote it, because a check of the changed one failed."""
        self._check_failures.inc()

    def record_call(self, call: Mapping[str, object]) -> None:
        """Record the tokens and the cost of model calls, such as that of a summary, from the fields of a log line."""
        for kind in _TOKEN_CLASSES:
            self._tokens.labels(kind).inc(_to_float(call.get(kind)))
        self._money.inc(_to_float(call.get("cost")))


_SHARE_BUCKETS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def _to_float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


# Log lines.

REQUEST_LOGGER = logging.getLogger("lamella.requests")
ANSWER_LOGGER = logging.getLogger("lamella.answers")
_MAX_LOGGED_CHARS = 200
_SECONDS_DIGITS = 3


def log_request(scope: Scope, status: int, caller: str, *, seconds: float, metrics: ServerMetrics) -> None:
    """Log a request and count it in the metrics, under the pattern of its route."""
    route = getattr(scope.get("route"), "path", None)
    metrics.record_request(route=route or "none", method=_known_method(scope), status=status, seconds=seconds)
    fields: dict[str, object] = {
        "at": "request",
        "method": _known_method(scope),
        "route": route,
        "path": scope["path"][:_MAX_LOGGED_CHARS],
        "status": status,
        "seconds": round(seconds, _SECONDS_DIGITS),
        "caller": caller,
        "client": (scope.get("client") or ("",))[0],
    }
    conversation = scope.get("path_params", {}).get("conversation")
    if isinstance(conversation, str):
        fields["conversation"] = conversation[:_MAX_LOGGED_CHARS]
    _log_json(REQUEST_LOGGER, fields)


def log_answer(fields: Mapping[str, object], *, text: str, with_preview: bool) -> None:
    """Log an answer with the fields ``fields`` and its length; its beginning only if ``with_preview`` is set."""
    shown = {"preview": text[:_MAX_LOGGED_CHARS]} if with_preview else {}
    _log_json(ANSWER_LOGGER, {"at": "answer", **fields, "length": len(text), **shown})


def _log_json(logger: logging.Logger, fields: Mapping[str, object]) -> None:
    logger.info("%s", json.dumps(fields, ensure_ascii=True, default=str), extra={"told": fields})


def _known_method(scope: Scope) -> str:
    """Return a known HTTP method, or ``other``: each value becomes a metric label, and clients could invent many."""
    known = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"


# Traces.

_TRACER_NAME = "lamella.server"


def start_answer_span(conversation: str, caller: str) -> Span:
    """Start the span of a turn, from its question to its answer."""
    named = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": conversation, "lamella.caller": caller}
    return trace.get_tracer(_TRACER_NAME).start_span("chat", kind=SpanKind.CLIENT, attributes=named)


def record_compaction_span(span: Span, steps: Sequence[str], *, before: int, after: int) -> None:
    """Record a compaction as a child span of the turn."""
    attributes: Mapping[str, str | int | Sequence[str]] = {
        "lamella.compaction.steps": list(steps),
        "lamella.compaction.tokens_before": before,
        "lamella.compaction.tokens_after": after,
    }
    context = trace.set_span_in_context(span)
    trace.get_tracer(_TRACER_NAME).start_span("lamella.compaction", context=context, attributes=attributes).end()


def get_error_code(error: BaseException) -> str:
    """Return the code of an error of Lamella, or the class of another error."""
    return str(getattr(error, "code", type(error).__name__))


def finish_answer_span(span: Span, fields: Mapping[str, object], *, error: BaseException | None) -> None:
    """End the span of a turn with its model, token counts and outcome."""
    usage = fields.get("tokens")
    counts = usage if isinstance(usage, Mapping) else {}
    model = str(fields.get("model") or "")
    # The name of a model behind an address is recorded without the address.
    provider, _, rest = model.partition(":")
    name = rest.rpartition("#")[2]
    plain, read, short, long = (counts.get(kind) or 0 for kind in ("plain", "read", "write", "write_long"))
    write = short + long
    span.update_name(f"chat {name or model}".strip())
    span.set_attributes(
        {
            "gen_ai.provider.name": provider or "lamella",
            "gen_ai.request.model": name or model,
            "gen_ai.usage.input_tokens": plain + read + write,
            "gen_ai.usage.cache_read.input_tokens": read,
            "gen_ai.usage.cache_creation.input_tokens": write,
            "gen_ai.usage.output_tokens": counts.get("output") or 0,
            "gen_ai.response.finish_reasons": [str(fields.get("stop") or fields.get("ended"))],
        }
    )
    if error is not None:
        span.set_attribute("error.type", get_error_code(error))
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def set_up_tracing(address: str) -> None:
    """Send spans to a collector over OTLP and HTTP; raises ``ExtraNotInstalledError`` without the extra."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ExtraNotInstalledError(
            f"Traces need {error.name}, which is not installed.", hint=install_hint("telemetry")
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "lamella"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
    trace.set_tracer_provider(provider)


# Metrics from log records of turns and model calls.

_METRIC_LOGGERS = (logging.getLogger("lamella.turns"), logging.getLogger("lamella.calls"))


class TurnMetricsHandler(logging.Handler):
    """A log handler that records figures of turns and calls as metrics; it writes no log itself."""

    def __init__(self, metrics: ServerMetrics) -> None:
        super().__init__(logging.INFO)
        self._metrics = metrics
        self._levels: dict[logging.Logger, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        turn = getattr(record, "turn", None)
        if isinstance(turn, dict):
            self._metrics.record_turn(turn)
        call = getattr(record, "call", None)
        if isinstance(call, dict):
            self._metrics.record_call(call)

    def start(self) -> None:
        """Start to listen, and raise the level of the loggers to INFO if they would drop the lines."""
        for logger in _METRIC_LOGGERS:
            logger.addHandler(self)
            if logger.getEffectiveLevel() > logging.INFO:
                self._levels[logger] = logger.level
                logger.setLevel(logging.INFO)

    def stop(self) -> None:
        """Stop listening, and restore the levels of the loggers unless another server of this process still listens."""
        for logger in _METRIC_LOGGERS:
            logger.removeHandler(self)
            level = self._levels.pop(logger, None)
            others = [handler for handler in logger.handlers if isinstance(handler, TurnMetricsHandler)]
            if level is None:
                continue
            if others:
                others[0]._levels.setdefault(logger, level)
            else:
                logger.setLevel(level)
