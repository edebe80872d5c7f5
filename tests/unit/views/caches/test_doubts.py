"""What a profile does not fit, as lines that a file of facts takes."""

from lamella.core.ledger.contradictions import Contradiction
from lamella.engine.keeping.commands.facts import ModelDoubt
from lamella.providers import parse_profiles
from lamella.views.caches.doubts import view_doubt, write_facts

SEEN = (
    Contradiction(turns=(2,), says="690 tokens came from the cache", facts=(("minimum", 690),)),
    Contradiction(turns=(3, 4), says="it lived longer", facts=(("lifetime", 900),)),
)


def test_the_lines_make_a_file_that_says_what_was_seen() -> None:
    doubt = ModelDoubt(model="anthropic:claude-sonnet-4-5", as_of="2026-11-17", seen=SEEN)
    own = parse_profiles("\n".join(write_facts(doubt)), name="own.toml").profile(doubt.model)
    assert (own.minimum, own.lifetime) == (690, 900)
    body = view_doubt(doubt)
    assert body["facts"] == {"minimum": 690, "lifetime": 900}
    assert body["model_facts"] == "\n".join(write_facts(doubt))


def test_what_is_no_cache_is_said_in_words_of_toml_and_a_server_by_its_models_name() -> None:
    fixed = Contradiction(turns=(2, 3, 4), says="constant", facts=(("implicit", False), ("breakpoints", 0)))
    doubt = ModelDoubt(model="openai-compatible:http://localhost:1/v1#qwen3:8b", as_of="2026-11-17", seen=(fixed,))
    lines = write_facts(doubt)
    assert lines[1:] == ['match = "qwen3:8b"', "as_of = 2026-11-17", "implicit = false", "breakpoints = 0"]
    own = parse_profiles("\n".join(lines), name="own.toml").profile("qwen3:8b-instruct#qwen3:8b")
    assert (own.read, own.write) == (1.0, 1.0)
