"""Directives: a word of the user's own forces a tool; anybody else's does not."""

import pytest

from lamella.core.artifacts.kinds import make_tool_definition
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.text.mentions import TOOL_MENTIONS
from lamella.runners.query_planning import TOOL_BY_DIRECTIVE, list_forced_calls, parse_directives, requests_writing


def tool(name: str, argument: str) -> ToolDefinition:
    parameters = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return make_tool_definition(name, description="", parameters=parameters)


TOOLS = (tool("search_notes", "query"), tool("web_search", "q"), tool("remember", "fact"))


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("@vault what grows?", ("vault",)),
        ("What grows? (@Vault, @WEB)", ("vault", "web")),
        ("What grows in @vault. And when?", ("vault",)),
        ("@websearch frost dates @websearch", ("websearch",)),
        ("Remember @memory: I like beans.", ("memory",)),
        ("@vaults @vault/a.md @vault.md a@web.de @composer @@web", ()),
        ("Two ``ticks, @vault and one` are no code", ("vault",)),
        ("What does `@web` do?\n```\n@vault\n```\n", ()),
        ("", ()),
    ],
)
def test_directive_is_separate_word_outside_code(typed: str, found: tuple[str, ...]) -> None:
    assert parse_directives(typed) == found


def test_every_directive_is_known_to_mentions() -> None:
    assert {*TOOL_BY_DIRECTIVE, "composer"} == TOOL_MENTIONS


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("@composer Write it.", True),
        ("Write it, @Composer", True),
        ("me@composer.io", False),
        ("`@composer`", False),
        ("@composers", False),
    ],
)
def test_writing_is_requested_by_separate_word(typed: str, *, written: bool) -> None:
    assert requests_writing(typed) is written


def test_directive_calls_its_tool_with_nearby_words() -> None:
    assert list_forced_calls("@vault and @web: frost\ndates", TOOLS) == (
        [("search_notes", {"query": "and : frost dates"}), ("web_search", {"q": "and : frost dates"})],
        [],
    )
    assert list_forced_calls("@memory I like beans.", TOOLS)[0] == [("remember", {"fact": "I like beans."})]


def test_directive_without_tool_or_words_warns() -> None:
    calls, (said,) = list_forced_calls("@web frost", TOOLS[:1])
    assert (calls, said.partition(". ")[0]) == ([], "@web does nothing: there is no web_search here")
    assert said.endswith("Set web_search to the address of a search engine.")
    assert list_forced_calls("@vault", TOOLS) == ([], ["@vault does nothing: there are no words with it."])
