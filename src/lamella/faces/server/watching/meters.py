"""Meters: what a server did, in numbers that a scraper collects."""

from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_TOKENS = ("plain", "read", "write", "write_long", "output")
_PHASES = ("build", "first", "total")


class ServerMeters:
    """Counters of one process. Names and labels are those of docs/server.md; no label has what people chose."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "lamella_requests",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "lamella_request_seconds", "Until the last byte.", ["route"], buckets=_SECONDS, registry=self.registry
        )
        self._first = Histogram(
            "lamella_first_event_seconds", "Until an answer begins.", buckets=_SECONDS, registry=self.registry
        )
        self.running = Gauge("lamella_runs", "Turns under way.", registry=self.registry)
        self._answers = Counter("lamella_answers", "Answers by how they ended.", ["ended"], registry=self.registry)
        self._tokens = Counter("lamella_tokens", "Tokens by price class.", ["kind"], registry=self.registry)
        self._predicted = Counter("lamella_tokens_predicted", "Tokens predicted to be cached.", registry=self.registry)
        self._money = Counter("lamella_cost_usd", "What calls cost, where that is known.", registry=self.registry)
        self._layers = Counter("lamella_layer_tokens", "Tokens sent, by layer.", ["layer"], registry=self.registry)
        self._phases = Histogram(
            "lamella_phase_seconds", "Turns by phase.", ["phase"], buckets=_SECONDS, registry=self.registry
        )
        self._causes = Counter(
            "lamella_prefix", "Requests by what moved their prefix.", ["cause"], registry=self.registry
        )
        self._outcomes = Counter(
            "lamella_cache", "Calls by what became of the cache.", ["outcome"], registry=self.registry
        )
        self._compactions = Counter("lamella_compactions", "Compactions by step.", ["step"], registry=self.registry)
        self._segments = Counter("lamella_segments", "Segments sent, by layer.", ["layer"], registry=self.registry)
        self._dedup = Histogram(
            "lamella_dedup_ratio", "Referred to instead of repeated.", buckets=_SHARES, registry=self.registry
        )
        self._compacted = Histogram(
            "lamella_compacted_share", "Compacted context.", buckets=_SHARES, registry=self.registry
        )
        self._unparsed = Counter("lamella_unparsed", "Blocks that nobody knows.", registry=self.registry)

    def note_request(self, *, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def note_first(self, seconds: float) -> None:
        self._first.observe(seconds)

    def note_turn(self, turn: Mapping[str, object]) -> None:
        """The figures of a turn that was answered, as its line of the log has them."""
        self._causes.labels(str(turn.get("cause"))).inc()
        self._outcomes.labels(str(turn.get("outcome"))).inc()
        self._predicted.inc(_number(turn.get("predicted")))
        self._dedup.observe(_number(turn.get("dedup_ratio")))
        self._compacted.observe(_number(turn.get("compacted_share")))
        self._unparsed.inc(_number(turn.get("unparsed")))
        for phase in _PHASES:
            if turn.get(phase) is not None:
                self._phases.labels(phase).observe(_number(turn[phase]))
        for name, value in turn.items():
            if name.startswith("segments_"):
                self._segments.labels(name.removeprefix("segments_")).inc(_number(value))

    def note_layers(self, by_layer: Mapping[str, int]) -> None:
        """What a request weighed, layer by layer."""
        for layer, tokens in by_layer.items():
            self._layers.labels(layer).inc(tokens)

    def note_steps(self, steps: Sequence[str]) -> None:
        """What was compacted before a turn, step by step."""
        for step in steps:
            self._compactions.labels(step).inc()

    def note_answer(self, *, ended: str, usage: Mapping[str, int | None], cost: float | None) -> None:
        self._answers.labels(ended).inc()
        self.note_call({**usage, "cost": cost})

    def note_call(self, call: Mapping[str, object]) -> None:
        """What model calls took in tokens and money, such as that of a summary, as its line of the log has it."""
        for kind in _TOKENS:
            self._tokens.labels(kind).inc(_number(call.get(kind)))
        self._money.inc(_number(call.get("cost")))


_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
