"""``--set`` as people type it: an invalid setting is refused with the valid ones."""

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
def test_invalid_setting_names_values_and_similar_name(word: str) -> None:
    told, hint = REFUSED[word]
    with pytest.raises(LamellaError) as refused:
        parse_setting_options(None, [word])
    assert refused.value.message.startswith(told)
    assert hint in refused.value.hint


def test_hint_names_only_settings_of_conversation() -> None:
    with pytest.raises(LamellaError) as refused:
        parse_setting_options(None, ["x=3"])
    assert "linger" in refused.value.hint
    assert "model_facts" not in refused.value.hint


def test_setting_option_is_converted_to_its_type() -> None:
    given = parse_setting_options("Be kind.", ["temperature = 0.5", "instructions=a=b", "layout=in_place"])
    assert given == {"system": "Be kind.", "temperature": 0.5, "instructions": "a=b", "layout": "in_place"}
