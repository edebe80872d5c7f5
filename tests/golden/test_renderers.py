"""A renderer keeps its number only as long as it renders the same bytes: stored conversations go by that number."""

from tests.golden.renderers import read_digests, take_digests

from lamella.core.prompt.prompt import RENDERER_VERSION

CHANGED = "messages render otherwise: raise RENDERER in core/prompt/prompt.py, then regenerate"


def test_renderer_output_matches_recorded_digests() -> None:
    assert take_digests() == read_digests()[str(RENDERER_VERSION)], CHANGED


def test_every_renderer_version_has_digests() -> None:
    assert sorted(read_digests(), key=int) == [str(number) for number in range(1, RENDERER_VERSION + 1)]
