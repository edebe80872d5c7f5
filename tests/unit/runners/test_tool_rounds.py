"""Which calls are searches, and which repeat one."""

import pytest

from lamella.attach import Tool
from lamella.providers import ToolCall
from lamella.runners.tool_rounds import SearchCall, find_repeated_searches, find_search, list_search_tools

SEARCHING = frozenset({"search"})


def search(query: str, tool: str = "search", more: str = "") -> SearchCall:
    found = find_search(ToolCall(id="c", name=tool, arguments=f'{{"query": "{query}"{more}}}'), {tool})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("beans sown in May", "Beans, sown in may!", True),
        ("a b c d", "a b c d e", True),
        ("one two three", "one two four", False),
        ("tomato", "tomato blight treatment", False),
        ("a b c", "c b a", True),
        ("京都の夏", "京都の夏", True),
        ("京都の夏", "東京の冬", False),
        ("", "", True),
        ("?!", "beans", False),
    ],
)
def test_searches_sharing_six_in_ten_words_are_repeats(one: str, other: str, *, same: bool) -> None:
    assert search(one).repeats(search(other)) is same
    assert search(other).repeats(search(one)) is same


def test_another_tool_or_another_folder_is_another_search() -> None:
    assert not search("beans").repeats(search("beans", tool="web"))
    assert not search("beans").repeats(search("beans", more=', "folder": "beds"'))
    assert search("beans", more=', "a": 1, "b": 2').repeats(search("beans", more=', "b": 2, "a": 1'))


@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"query": 7}', '{"words": "beans"}', '"beans"', "null"])
def test_call_without_words_is_no_search(arguments: str) -> None:
    assert find_search(ToolCall(id="c", name="search", arguments=arguments), SEARCHING) is None


def test_tool_with_query_text_is_search_tool() -> None:
    def tool(name: str, properties: object) -> Tool:
        return Tool(name=name, parameters={"type": "object", "properties": properties})

    told = [
        tool("search", {"query": {"type": "string"}}),
        tool("read", {"path": {"type": "string"}}),
        tool("count", {"query": {"type": "integer"}}),
        tool("odd", ["query"]),
        Tool(name="bare"),
    ]
    assert list_search_tools(one.to_definition() for one in told) == {"search"}


def test_of_calls_that_repeat_each_other_the_first_is_run() -> None:
    calls = [
        ToolCall(id=name, name="search", arguments=f'{{"query": "{query}"}}')
        for name, query in (("a", "beans"), ("b", "Beans"), ("c", "peas"), ("d", "frost"))
    ]
    assert find_repeated_searches(calls, [search("frost")], SEARCHING) == {"b": "beans", "d": "frost"}
