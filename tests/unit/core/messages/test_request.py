"""Where stable stretches of a request end, as far as its messages show."""

from tests.wire.material import assistant, note, system, user

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
