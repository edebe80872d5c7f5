"""The model of the engine's cache: one slot, and saved prompts. Compared with the real engine elsewhere."""

from hypothesis import given
from hypothesis import strategies as st

from lamella.providers.local import CacheForecast, LlamaCacheState, Tokens, common_prefix_length

A: Tokens = tuple(range(100))
B: Tokens = tuple(range(1_000, 1_100))
prompts = st.lists(st.integers(0, 2), min_size=1, max_size=12).map(tuple)


def _after(*prompts: Tokens, shelf: bool) -> LlamaCacheState:
    cache = LlamaCacheState(saves_prompts=shelf)
    for prompt in prompts:
        cache = cache.with_prepared_slot(prompt).after_answer(prompt, cached_tokens=len(prompt))
    return cache


def test_new_engine_has_empty_cache() -> None:
    assert LlamaCacheState().forecast_cached_tokens(A) == CacheForecast(prompt_tokens=100, cached_tokens=0)


def test_extended_prompt_is_cached_up_to_last_answer() -> None:
    cache = LlamaCacheState().after_answer((*A, 7, 8, 9), cached_tokens=102)
    assert cache.forecast_cached_tokens((*A, 7, 8, 9, 10)) == CacheForecast(prompt_tokens=104, cached_tokens=102)


def test_last_token_of_prompt_is_never_cached() -> None:
    assert _after(A, shelf=False).forecast_cached_tokens(A).cached_tokens == 99


def test_half_processed_prompt_is_cached_by_half() -> None:
    assert LlamaCacheState().after_answer(A, cached_tokens=50).forecast_cached_tokens(A) == CacheForecast(
        prompt_tokens=100, cached_tokens=50
    )


def test_partly_seen_answer_makes_forecast_lower_bound() -> None:
    cache = LlamaCacheState().after_answer(A, cached_tokens=120, is_exact=False)
    assert cache.forecast_cached_tokens((*A, 1, 2)) == CacheForecast(
        prompt_tokens=102, cached_tokens=100, is_exact=False
    )
    assert cache.forecast_cached_tokens((*A[:50], 1, 2)) == CacheForecast(
        prompt_tokens=52, cached_tokens=50, is_exact=True
    )


def test_without_saved_prompts_other_conversation_replaces_cache() -> None:
    assert _after(A, B, shelf=False).forecast_cached_tokens((*A, 1)).cached_tokens == 0


def test_saved_prompt_of_first_conversation_is_restored() -> None:
    cache = _after(A, B, shelf=True)
    assert cache.forecast_cached_tokens((*A, 1)).cached_tokens == 100
    assert cache.forecast_cached_tokens((*B, 1)).cached_tokens == 100


def test_saved_prompt_with_short_overlap_is_not_restored() -> None:
    assert _after(A, B, shelf=True).forecast_cached_tokens((*A[:20], 1, 2)).cached_tokens == 0


def test_prefix_of_saved_prompt_is_not_saved_again() -> None:
    cache = _after(A, B, A[:60], B, shelf=True)
    assert len(cache.saved_prompts) <= 2


@given(sent=st.lists(prompts, max_size=6), prompt=prompts, shelf=st.booleans())
def test_forecast_is_at_most_best_earlier_prompt(*, sent: list[Tokens], prompt: Tokens, shelf: bool) -> None:
    served = _after(*sent, shelf=shelf).forecast_cached_tokens(prompt).cached_tokens
    assert 0 <= served <= max((common_prefix_length(one, prompt) for one in sent), default=0)
    assert served < len(prompt)


@given(prompts, prompts)
def test_shared_tokens_are_the_longest_common_beginning(one: Tokens, other: Tokens) -> None:
    shared = common_prefix_length(one, other)
    assert one[:shared] == other[:shared]
    assert one[shared : shared + 1] != other[shared : shared + 1] or shared == len(one) == len(other)
