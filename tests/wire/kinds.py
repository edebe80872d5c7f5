"""Every wire format as the suites need it: its server, its provider, and the errors it would send."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.wire import anthropic_server as anthropic
from tests.wire.script import Act, Fail
from tests.wire.serving import Loopback

from lamella.adapters.providers.anthropic.send import AnthropicProvider
from lamella.ports import ChatProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A wire format under test."""

    name: str
    model: str
    key: str
    serve: Callable[..., AbstractContextManager[Loopback]]
    connect: Callable[..., ChatProvider]
    root: str
    rate_limit: Act
    overload: Act
    overflow: Act
    late_failure: Act
    impossible: dict[str, object]
    misled: dict[str, object]


def _anthropic(url: str, key: str, patience: float) -> ChatProvider:
    return AnthropicProvider(key=key, address=url, patience=patience)


WIRES = (
    Wire(
        name="anthropic",
        model=anthropic.MODEL,
        key=anthropic.KEY,
        serve=anthropic.anthropic_server,
        connect=_anthropic,
        root="",
        rate_limit=Fail(status=429, kind="rate_limit_error", words="Slow down", headers={"retry-after": "17"}),
        overload=Fail(status=529, kind="overloaded_error", words="Overloaded"),
        overflow=Fail(
            status=400, kind="invalid_request_error", words="prompt is too long: 1200000 tokens > 1000000 maximum"
        ),
        late_failure=Fail(kind="overloaded_error", words="Overloaded", inside=True),
        impossible={"input_tokens": -5},
        misled={"input_tokens": "many", "cache_read_input_tokens": None},
    ),
)
