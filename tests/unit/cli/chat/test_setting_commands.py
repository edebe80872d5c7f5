"""``--set`` as people type it: what cannot be set is told with what can."""

import pytest

from lamella.cli.chat.setting_commands import parse_setting_options
from lamella.errors import LamellaError

REFUSED = {
    "=3": ("Missing setting name: --set =3", "Example: --set temperature=0.2. Settings: window, reserve, "),
    "  = ": ("Missing setting name: --set   = ", "Settings: "),
    "x": ("There is no setting x.", "Settings are: "),
    "tempreature": ("There is no setting tempreature.", "Did you mean temperature? Settings are: "),
    "temperature": (
        "Missing value: --set temperature",
        "temperature takes a number from 0, which is steady, to 2. Example: ",
    ),
    "effort=low": ("There is no setting effort.", "Did you mean reasoning_effort? "),
    "Top-P=1": ("There is no setting Top-P.", "Settings are: "),
    "History-Turns=3": ("There is no setting History-Turns.", "Did you mean history_turns? "),
    "max-tokens=3": ("Unknown setting: max-tokens", "Use --max-tokens to limit the length of answers."),
    "temperature=hot": (
        "The setting temperature is 'hot': ",
        "temperature takes a number from 0, which is steady, to 2. ",
    ),
    "window=": ("The setting window is '': ", "window takes a whole number of tokens, more than reserve. "),
    "warn=much": (
        "The setting warn is 'much': ",
        "warn takes a share of the window between 0 and 1, with warn < trigger < hard, and target < trigger. ",
    ),
    "linger=none": ("The setting linger is 'none': ", "linger takes a whole number of turns from 0. "),
    "layout": ("Missing value: --set layout", "layout takes one of: library, in_place, auto. Example: "),
    'compaction={"step": 1}': (
        "There is no setting compaction.step.",
        "Did you mean compaction.steps? Settings of comp",
    ),
    "compaction.steps=[]": ("compaction.steps cannot be set separately.", 'Write it as JSON: {"steps": …}'),
    "serve=3": ("serve cannot be set for one conversation.", "lamella.toml"),
    "web_search=x": ("web_search cannot be set for one conversation.", "lamella.toml"),
    "store=memory:": ("store cannot be set for one conversation.", "--store"),
}


@pytest.mark.parametrize("word", REFUSED)
def test_what_cannot_be_set_is_told_with_the_setting_its_values_and_a_near_name(word: str) -> None:
    told, hint = REFUSED[word]
    with pytest.raises(LamellaError) as refused:
        parse_setting_options(None, [word])
    assert refused.value.message.startswith(told)
    assert hint in refused.value.hint


def test_only_what_a_conversation_can_set_is_named_to_those_who_set_something_else() -> None:
    with pytest.raises(LamellaError) as refused:
        parse_setting_options(None, ["x=3"])
    assert "linger" in refused.value.hint
    assert "model_facts" not in refused.value.hint


def test_what_can_be_set_is_of_its_type() -> None:
    given = parse_setting_options("Be kind.", ["temperature = 0.5", "instructions=a=b", "layout=in_place"])
    assert given == {"system": "Be kind.", "temperature": 0.5, "instructions": "a=b", "layout": "in_place"}
