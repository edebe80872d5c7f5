"""Profile mismatches, as lines for a file of model facts."""

from tests.bodies import as_json

from lamella.conversation.expired_cache import ProfileMismatch
from lamella.core.ledger.cache_profile import ProfileContradiction
from lamella.providers import parse_profiles
from lamella.schemas.ledger import ledger_to_json, render_model_facts

SEEN = (
    ProfileContradiction(turns=(2,), description="690 tokens came from the cache", facts=(("minimum", 690),)),
    ProfileContradiction(turns=(3, 4), description="it lived longer", facts=(("lifetime", 900),)),
)


def test_mismatch_lines_form_valid_facts_file() -> None:
    doubt = ProfileMismatch(model="anthropic:claude-sonnet-4-5", as_of="2026-11-17", contradictions=SEEN)
    own = parse_profiles("\n".join(render_model_facts(doubt)), name="own.toml").get_cache_profile(doubt.model)
    assert (own.minimum, own.lifetime) == (690, 900)
    (body,) = as_json(ledger_to_json("garden", [], [doubt]))["doubts"]
    assert body["facts"] == {"minimum": 690, "lifetime": 900}
    assert body["model_facts"] == "\n".join(render_model_facts(doubt))


def test_missing_cache_is_written_in_toml_with_bare_model_name() -> None:
    fixed = ProfileContradiction(
        turns=(2, 3, 4), description="constant", facts=(("implicit", False), ("breakpoints", 0))
    )
    doubt = ProfileMismatch(
        model="openai-compatible:http://localhost:1/v1#qwen3:8b", as_of="2026-11-17", contradictions=(fixed,)
    )
    lines = render_model_facts(doubt)
    assert lines[1:] == ['match = "qwen3:8b"', "as_of = 2026-11-17", "implicit = false", "breakpoints = 0"]
    own = parse_profiles("\n".join(lines), name="own.toml").get_cache_profile("qwen3:8b-instruct#qwen3:8b")
    assert (own.read, own.write) == (1.0, 1.0)
