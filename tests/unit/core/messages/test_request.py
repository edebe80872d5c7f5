"""Where stable stretches of a request end, as far as its messages show."""

from tests.wire.material import assistant, note, system, user

from lamella.core.artifacts.make import make_tool_definition
from lamella.core.messages.request import Request, Seams, find_seams


def test_the_instructions_end_where_the_library_begins() -> None:
    message = system(note("a"), note("b"), instructions="Be terse.")
    seams = find_seams([message, user("Hi")])
    assert seams.fixed is not None
    assert message.text[: seams.fixed] == "Be terse.\n\n## Context Library\n\n"
    assert message.text[seams.system[1] :] == note("b")
    assert seams.system[-1] == len(message.text)


def test_without_a_library_only_the_end_is_a_seam() -> None:
    assert find_seams([system(instructions="Be terse.")]) == Seams(system=(9,))
    assert find_seams([user("Hi"), assistant("Yes")]) == Seams()
    assert find_seams([]) == Seams()


def test_seams_that_are_given_are_taken() -> None:
    seams = Seams(messages=1)
    assert Request(model="m", messages=(user("Hi"),), seams=seams).settled is seams


def test_a_request_is_nothing_but_its_messages_until_more_is_said_of_it() -> None:
    request = Request(model="m", messages=())
    assert (request.tools, request.answer, request.marks, request.extras) == ((), 4_096, (), "{}")
    assert (request.conversation, request.seams, request.pause, request.compare) == (None, None, None, None)
    assert (request.lasting, request.temperature, request.effort, request.caching) == (None, None, None, None)
    assert request.call
    assert (Seams().fixed, Seams().system, Seams().messages) == (None, (), None)


def test_the_texts_of_a_request_are_not_printed() -> None:
    definition = make_tool_definition("search", description="secret words", parameters={})
    shown = repr(Request(model="m", messages=(user("secret question"),), tools=(definition,)))
    assert "secret" not in shown
    assert "messages" not in shown
    assert "tools" not in shown


def test_only_the_heading_that_ends_a_piece_opens_the_library() -> None:
    quoted = system(note("a"), instructions="As said in ## Context Library before.")
    seams = find_seams([quoted])
    assert seams.fixed is not None
    assert quoted.text[: seams.fixed].endswith("before.\n\n## Context Library\n\n")
