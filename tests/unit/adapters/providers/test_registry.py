"""One row per provider says all that follows from it, and no two rows say the same."""

from itertools import chain

import pytest

from lamella.adapters.providers.dialects import DIALECTS
from lamella.adapters.providers.registry import (
    FORMS,
    KEY_NAMES,
    PROVIDERS,
    bare_model,
    find_row,
    find_server_key,
    runs_here,
)
from lamella.adapters.providers.row import ProviderRow, find_key


def test_every_name_belongs_to_one_row() -> None:
    names = list(chain.from_iterable(row.names for row in PROVIDERS))
    assert len(names) == len(set(names))
    assert all(find_row(name.upper()) is row for row in PROVIDERS for name in row.names)
    assert find_row("nobody") is None


def test_every_form_begins_with_a_name_of_its_row() -> None:
    assert [row.form for row in PROVIDERS if row.form and row.form.partition(":")[0] not in row.names] == []
    assert FORMS.split(", ")[:3] == ["local", "gguf:PATH", "anthropic:NAME"]


def test_whoever_makes_models_is_found_by_the_name_that_facts_give_him() -> None:
    makers = {profile.provider for row in PROVIDERS for _, profile in row.models}
    assert sorted(maker for maker in makers if find_row(maker) is None) == []
    assert all(find_row(profile.provider) is row for row in PROVIDERS for _, profile in row.models)


def test_no_beginning_of_a_models_name_is_known_by_two_rows() -> None:
    for one in PROVIDERS:
        for other in (row for row in PROVIDERS if row is not one):
            starts = [start for start, _ in (*other.models, *other.caches)]
            assert not [start for start, _ in (*one.models, *one.caches) if start.startswith(tuple(starts))]


def test_dialects_are_told_in_the_order_of_the_rows() -> None:
    assert [dialect.name for dialect in DIALECTS] == ["anthropic", "openai", "openai-responses", "gemini"]
    assert KEY_NAMES == ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "LAMELLA_API_KEY")


@pytest.mark.parametrize(
    ("form", "rest", "takes", "bare"),
    [
        ("house:NAME", "m:1", True, "m:1"),
        ("house:NAME", "", True, None),
        ("house:PATH", "m.gguf", True, None),
        ("house:PATH", "", False, None),
        ("house:URL#NAME", "http://h#m", True, "m"),
        ("house:URL#NAME", "http://h", True, None),
        ("house", "", True, None),
        ("house", "m", False, "m"),
        ("", "m", True, "m"),
    ],
)
def test_what_follows_the_colon_is_as_the_form_says(form: str, rest: str, takes: bool, bare: str | None) -> None:  # noqa: FBT001
    row = ProviderRow(names=("house",), form=form)
    assert (row.takes(rest), row.strip(rest)) == (takes, bare)


def test_places_stay_in_a_models_name() -> None:
    assert [bare_model(model) for model in ("gguf:/m.gguf", "scripted:a.json", "local")] == [
        "gguf:/m.gguf",
        "scripted:a.json",
        "local",
    ]


def test_the_first_variable_that_is_set_holds_the_key() -> None:
    row = ProviderRow(names=("house",), keys=("FIRST", "SECOND"))
    assert find_key(row, {"FIRST": "", "SECOND": "two"}) == ("SECOND", "two")
    assert find_key(row, {"FIRST": "one", "SECOND": "two"}) == ("FIRST", "one")
    assert find_key(row, {}) is None


def test_models_in_this_process_are_told_from_others() -> None:
    there = ("local:big", "gguf:", "anthropic:claude-opus-5-5", "claude-opus-5-5", "")
    assert [model for model in ("local", "gguf:/m.gguf", *there) if runs_here(model)] == ["local", "gguf:/m.gguf"]


def test_only_a_model_that_names_its_server_has_a_key_for_it() -> None:
    assert find_server_key("OpenAI-compatible:http://h/v1#m") == "LAMELLA_API_KEY"
    assert [find_server_key(model) for model in ("openai:gpt-6", "local", "gpt-6", "")] == [None] * 4
