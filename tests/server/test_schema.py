"""Schemathesis over the whole description: no request gives a 500, and every answer matches the description."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.server.running import RunningServer, running
from tests.waiting import HANG_SECONDS

from lamella.core.messages import Delta, ModelRequest, StopDelta, StopReason, TextDelta
from lamella.testing import ScriptedProvider

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# The one request after which there would be no conversation to try others on.
ERASE = ("DELETE", "/v1/conversations/{conversation}")


class PatientProvider(ScriptedProvider):
    """Says the same for as often as it is asked."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        yield TextDelta(text="At noon.")
        yield StopDelta(reason=StopReason.END)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", PatientProvider(), vault=Path("examples/vault"), serve={"rate": 10_000_000}) as one:
        yield one


@pytest.mark.parametrize("examples", [3, pytest.param(60, marks=pytest.mark.long)])
def test_fuzzed_requests_cause_no_server_error_and_match_schema(server: RunningServer, examples: int) -> None:
    # A stream without an end answers when something changes, which test_live_updates.py waits for.
    schema = schemathesis.openapi.from_dict(server.client.get("/openapi.json").json()).exclude(path="/v1/events")
    known = server.begin(f"known-{examples}")
    message = server.ask(known, "When?")["message"]
    tried = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
        cases = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases, real=st.booleans())
        def try_one(case: schemathesis.Case[Any], real: bool) -> None:  # noqa: FBT001 - what hypothesis calls
            nonlocal tried
            tried += 1
            parameters = case.path_parameters
            if real and isinstance(parameters, dict) and (case.method, case.path) != ERASE:
                there: dict[str, str | int] = {"conversation": known, "message": message, "number": 1}
                parameters.update({name: value for name, value in there.items() if name in parameters})
            case.validate_response(case.call(base_url=server.url, timeout=HANG_SECONDS), checks=CHECKS)

        try_one()
    assert tried >= 40 * examples
