"""The lines between the parts of a request are part of its bytes: stored messages were sent with them."""

from lamella.core.messages import LIBRARY_HEADING, PROJECT_INTRO, QUERY_LABEL


def test_headings_and_labels_are_unchanged() -> None:
    assert LIBRARY_HEADING == "## Context Library\n\n"
    assert PROJECT_INTRO == "The user works on the project "
    assert QUERY_LABEL == "[User query]:\n"
