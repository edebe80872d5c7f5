"""The ends of the stable parts of a request, derived from its messages."""

from tests.wire.material import assistant, note, system, user

from lamella.core.artifacts.kinds import make_tool_definition
from lamella.core.messages import CacheBoundaries, ModelRequest, derive_cache_boundaries


def test_stable_prefix_ends_at_library() -> None:
    message = system(note("a"), note("b"), instructions="Be terse.")
    seams = derive_cache_boundaries([message, user("Hi")])
    assert seams.stable_prefix_end is not None
    assert message.text[: seams.stable_prefix_end] == "Be terse.\n\n## Context Library\n\n"
    assert message.text[seams.system_positions[1] :] == note("b")
    assert seams.system_positions[-1] == len(message.text)


def test_request_without_library_has_only_end_boundary() -> None:
    assert derive_cache_boundaries([system(instructions="Be terse.")]) == CacheBoundaries(system_positions=(9,))
    assert derive_cache_boundaries([user("Hi"), assistant("Yes")]) == CacheBoundaries()
    assert derive_cache_boundaries([]) == CacheBoundaries()


def test_given_boundaries_are_used() -> None:
    seams = CacheBoundaries(stable_messages=1)
    assert ModelRequest(model="m", messages=(user("Hi"),), cache_boundaries=seams).effective_cache_boundaries is seams


def test_minimal_request_has_only_messages() -> None:
    request = ModelRequest(model="m", messages=())
    assert (request.tools, request.max_output_tokens, request.breakpoints, request.extra_fields_json) == (
        (),
        4_096,
        (),
        "{}",
    )
    assert (request.conversation, request.cache_boundaries, request.expected_pause, request.previous_reply_id) == (
        None,
        None,
        None,
        None,
    )
    assert (request.long_lifetime_until, request.temperature, request.effort, request.breakpoint_mode) == (
        None,
        None,
        None,
        None,
    )
    assert request.allows_tool_calls
    assert (
        CacheBoundaries().stable_prefix_end,
        CacheBoundaries().system_positions,
        CacheBoundaries().stable_messages,
    ) == (None, (), None)


def test_texts_of_a_request_are_not_printed() -> None:
    definition = make_tool_definition("search", description="secret words", parameters={})
    shown = repr(ModelRequest(model="m", messages=(user("secret question"),), tools=(definition,)))
    assert "secret" not in shown
    assert "messages" not in shown
    assert "tools" not in shown


def test_only_heading_at_end_of_piece_starts_library() -> None:
    quoted = system(note("a"), instructions="As said in ## Context Library before.")
    seams = derive_cache_boundaries([quoted])
    assert seams.stable_prefix_end is not None
    assert quoted.text[: seams.stable_prefix_end].endswith("before.\n\n## Context Library\n\n")
