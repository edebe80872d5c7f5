"""Pictures: counted by each provider's own rule, and taken within its limits."""

from itertools import pairwise

import pytest
from tests.unit.pictures import GIF, png

from lamella.core.artifacts.kinds import make_image_data
from lamella.core.artifacts.model import ImageData
from lamella.core.values import replace
from lamella.profiles import GENERIC_IMAGE_PROFILE, ImageProfile, ImageTokenRule
from lamella.providers.models import IMAGE_PROFILES, BuiltInModelProfiles
from lamella.tokenizers.counter import count_image_tokens, image_rejection_reason


def facts(model: str) -> ImageProfile:
    return BuiltInModelProfiles().get_model_profile(model).pictures


def picture(width: int = 10, height: int = 10, *, size: int = 0, shade: int = 0) -> ImageData:
    data = png(1, 1, shade).ljust(size, b"\0")
    return make_image_data(data, media_type="image/png", width=width, height=height)


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        # Anthropic's own table: a square of 1,000 pixels is 36 by 36 patches of 28.
        ("claude-sonnet-4-6", 1_000, 1_000, 1_296),
        ("claude-sonnet-4-6", 200, 200, 64),
        ("claude-opus-4-8", 1_000, 1_000, 1_296),
        # The examples in OpenAI's guide.
        ("gpt-4o", 1_024, 1_024, 765),
        ("gpt-4o", 2_048, 4_096, 1_105),
        ("gpt-4o", 512, 512, 255),
        ("gpt-4.1-mini", 1_024, 1_024, 1_659),
        ("gpt-4.1-mini", 1_800, 2_400, 2_353),
        ("gpt-5", 1_024, 1_024, 630),
        ("gpt-4o-mini", 512, 512, 8_500),
        ("o3", 1_024, 1_024, 675),
        ("gpt-5.4", 1_024, 1_024, 1_229),
        # Google's: one square up to 384 pixels, else squares of two thirds of the short side.
        ("gemini-2.5-pro", 384, 384, 258),
        ("gemini-2.5-pro", 960, 540, 6 * 258),
        ("gemini-2.5-pro", 3_000, 3_000, 16 * 258),
        ("gemini-3.8-flash", 10, 10, 1_120),
        ("gemini-3.8-flash", 4_000, 4_000, 1_120),
        # Nobody says how these count.
        ("grok-4", 1_000, 1_000, 1_296),
        ("house-model", 0, 0, 37 * 37),
    ],
)
def test_image_tokens_follow_rule_of_model(model: str, width: int, height: int, tokens: int) -> None:
    assert count_image_tokens(facts(model), width, height) == tokens


@pytest.mark.parametrize(
    ("model", "most"), [("claude-sonnet-4-6", 1_568), ("claude-opus-5-5", 4_784), ("gpt-5.6", 12_000)]
)
def test_large_image_is_scaled_to_token_limit(model: str, most: int) -> None:
    for width, height in ((8_000, 8_000), (8_000, 100), (1_569, 1_569), (5_000, 3_333), (1, 8_000)):
        assert 1 <= count_image_tokens(facts(model), width, height) <= most
    assert count_image_tokens(facts(model), 8_000, 8_000) > 0.9 * most


@pytest.mark.parametrize("start", [start for start, _ in IMAGE_PROFILES])
def test_larger_image_has_at_least_half_the_tokens(start: str) -> None:
    weights = [count_image_tokens(facts(start), side, side) for side in (1, 30, 300, 700, 1_500, 3_000, 8_000)]
    assert min(weights) > 0
    assert all(2 * after >= before for before, after in pairwise(weights))


def test_first_matching_image_profile_decides() -> None:
    for at, (start, _) in enumerate(IMAGE_PROFILES):
        assert not [earlier for earlier, _ in IMAGE_PROFILES[:at] if start.startswith(earlier)]


CLAUDE = facts("claude-haiku-4-5")


def test_image_within_limits_is_accepted() -> None:
    assert image_rejection_reason(CLAUDE, [], picture(8_000, 8_000)) == ""
    assert (
        image_rejection_reason(GENERIC_IMAGE_PROFILE, [picture()] * 9_999, picture(60_000, 60_000, size=10_000_000))
        == ""
    )


@pytest.mark.parametrize(
    ("there", "image", "why"),
    [
        ([], picture(8_001, 5), "it is 8,001 pixels long, and the model takes 8,000"),
        ([], picture(size=7_900_000), "it has 10,533,336 bytes in base64, and the model takes 10,485,760"),
        ([picture()] * 100, picture(), "the request has 100 pictures, and the model takes 100"),
        ([picture()] * 20, picture(2_001, 5), "with more than 20 pictures the model takes 2,000 pixels a side"),
        ([picture(5, 2_001), *[picture()] * 19], picture(), "and one is 2,001 pixels long"),
        (
            [picture(size=7_800_000)] * 3,
            picture(size=7_800_000),
            "all pictures have 41,600,000 bytes in base64 with it",
        ),
    ],
)
def test_image_rejection_states_both_numbers(there: list[ImageData], image: ImageData, why: str) -> None:
    assert why in image_rejection_reason(CLAUDE, there, image)


def test_up_to_twenty_images_may_be_large() -> None:
    assert image_rejection_reason(CLAUDE, [picture(2_001, 5)] * 19, picture(8_000, 5)) == ""


def test_unsupported_image_type_is_rejected() -> None:
    gif = make_image_data(GIF, media_type="image/gif", width=6, height=4)
    assert image_rejection_reason(CLAUDE, [], gif) == ""
    assert image_rejection_reason(facts("gemini-3"), [], gif).startswith(
        "it is image/gif, and the model takes image/png"
    )


def test_image_rule_without_bounds_counts_size() -> None:
    plain = ImageProfile(name="plain", rule=ImageTokenRule.PATCHES, unit=10)
    assert count_image_tokens(plain, 101, 20) == 22
    assert count_image_tokens(replace(plain, rule=ImageTokenRule.TILES, base=5, weight=3), 101, 20) == 71
    assert count_image_tokens(replace(plain, rule=ImageTokenRule.CROPS, unit=1_000), 90, 90) == 4
