"""Traces: a span for each answer and each compaction, in the names of OpenTelemetry's conventions for models.

The API of OpenTelemetry comes with the web framework and does nothing by itself; a program that has set up its SDK, or
the setting ``serve.traces`` with the extra ``telemetry``, has spans collected. No text is ever part of one.
"""

from collections.abc import Mapping, Sequence

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from lamella.errors import ExtraMissingError, tell_install

_TRACER = "lamella.server"


def start_answer(conversation: str, caller: str) -> Span:
    """The span of a turn, from its question to its answer."""
    named = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": conversation, "lamella.caller": caller}
    return trace.get_tracer(_TRACER).start_span("chat", kind=SpanKind.CLIENT, attributes=named)


def note_compaction(span: Span, steps: Sequence[str], *, before: int, after: int) -> None:
    """What was compacted on the way, as a span of its own inside that of the turn."""
    attributes: Mapping[str, str | int | Sequence[str]] = {
        "lamella.compaction.steps": list(steps),
        "lamella.compaction.tokens_before": before,
        "lamella.compaction.tokens_after": after,
    }
    context = trace.set_span_in_context(span)
    trace.get_tracer(_TRACER).start_span("lamella.compaction", context=context, attributes=attributes).end()


def end_answer(span: Span, told: Mapping[str, object], *, failed: BaseException | None) -> None:
    """What an answer came to: who was asked, tokens by price class, and how it ended."""
    usage = told.get("tokens")
    counts = usage if isinstance(usage, Mapping) else {}
    model = str(told.get("model") or "")
    # Of a model behind an address its name is told, and not the place.
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
            "gen_ai.response.finish_reasons": [str(told.get("stop") or told.get("ended"))],
        }
    )
    if failed is not None:
        code = getattr(failed, "code", type(failed).__name__)
        span.set_attribute("error.type", str(code))
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def send_traces(address: str) -> None:
    """Have spans sent to a collector that speaks OTLP over HTTP."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ExtraMissingError(
            f"Traces need {error.name}, which is not installed.", hint=tell_install("telemetry")
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "lamella"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
    trace.set_tracer_provider(provider)
