"""Count tokens for any model, offline.

``OfflineTokenCounter`` counts texts: exactly for OpenAI and for local models with a known vocabulary, otherwise as an
estimate with a stated error. ``TokenizerFamily`` says how a model family counts, with dated figures.
``count_image_tokens`` counts images, and ``image_rejection_reason`` says whether a request may contain another one.

Measured on 2026-11-15 with 1,194 texts (152 documentation notes, chat messages, tool results): the tokens of nine
public vocabularies divided by those of o200k. The overheads are those of each family's published chat format.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, floor, sqrt
from pathlib import Path

from lamella.core.artifacts.model import ImageData
from lamella.core.budget import Tokenizer
from lamella.core.values import replace
from lamella.plugins import PluginGroup, TokenCounterPlugin, call_plugin, find_plugins
from lamella.profiles import GENERIC_IMAGE_PROFILE, ImageProfile, ImageTokenRule
from lamella.tokenizers.gguf import ModelTokenizer, build_tokenizer, read_vocabulary
from lamella.tokenizers.o200k import TokenCountMemo, encode
from lamella.tokenizers.weights import is_local_model, locate_weights

_MEASUREMENT_NOTE = "measured on 1,194 texts, 2026-11-15"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFamily:
    """A model family: how it counts tokens, and whether its models accept images.

    ``prefixes`` has prefixes of ``provider:model`` or of the model name alone.
    """

    name: str
    prefixes: tuple[str, ...]
    factor: float
    accuracy: str
    tokens_per_message: int = 4
    tokens_per_request: int = 3
    accepts_images: bool = True


FAMILIES: tuple[TokenizerFamily, ...] = (
    TokenizerFamily(
        name="openai-cl100k",
        prefixes=("gpt-3.5", "gpt-4-", "text-embedding"),
        factor=1.0,
        accuracy=f"estimate, -2 % to +4 % against cl100k_base ({_MEASUREMENT_NOTE})",
        tokens_per_message=3,
    ),
    TokenizerFamily(
        name="openai",
        prefixes=("openai:", "azure:", "gpt-", "o1-", "o3-", "o4-", "chatgpt"),
        factor=1.0,
        accuracy="exact for o200k_base text; images and hidden text are the provider's own count",
        tokens_per_message=3,
    ),
    TokenizerFamily(
        name="anthropic",
        prefixes=("anthropic:", "claude"),
        factor=1.03,
        accuracy="estimate, error unknown: no vocabulary is public; nine that are lie 9 % below to 20 % above it",
    ),
    TokenizerFamily(
        name="google",
        prefixes=("google:", "gemini"),
        factor=1.09,
        accuracy=f"estimate, -8 % to +12 % against Gemma 3's vocabulary ({_MEASUREMENT_NOTE})",
    ),
    TokenizerFamily(
        name="deepseek",
        prefixes=("deepseek",),
        factor=1.03,
        accuracy=f"estimate, +-5 % against DeepSeek V3's vocabulary ({_MEASUREMENT_NOTE})",
    ),
    TokenizerFamily(
        name="mistral",
        prefixes=("mistral", "ministral", "codestral"),
        factor=1.08,
        accuracy=f"estimate, -8 % to +14 % against Mistral V3's vocabulary ({_MEASUREMENT_NOTE})",
    ),
    TokenizerFamily(
        name="qwen",
        prefixes=("qwen", "alibaba:"),
        factor=1.05,
        accuracy=f"estimate, -6 % to +13 % against Qwen 3's vocabulary ({_MEASUREMENT_NOTE})",
    ),
    TokenizerFamily(
        name="llama",
        prefixes=("meta:", "llama"),
        factor=1.0,
        accuracy=f"estimate, -2 % to +4 % against Llama 3's vocabulary ({_MEASUREMENT_NOTE})",
    ),
    # Used only if the file of a local model is missing or its vocabulary is of another kind.
    TokenizerFamily(
        name="local",
        prefixes=("local", "gguf:"),
        factor=1.15,
        accuracy="estimate, -12 % to +19 % against SmolLM2's vocabulary on 68 English notes, and up to 2.6 times as many "
        "for digits and other scripts (2026-11-16)",
        tokens_per_message=6,
        tokens_per_request=4,
        accepts_images=False,
    ),
)

GENERIC_FAMILY = TokenizerFamily(
    name="generic",
    prefixes=(),
    factor=1.0,
    accuracy=f"estimate with o200k_base; other vocabularies gave -6 % to +23 % ({_MEASUREMENT_NOTE})",
)


def get_tokenizer_family(model: str | None) -> TokenizerFamily:
    """Return the family of a model: by its own name, then by its provider, then the generic family."""
    provider, _, name = (model or "").lower().rpartition(":")
    for word in (name, f"{provider}:"):
        for family in FAMILIES:
            if word.startswith(family.prefixes):
                return family
    return GENERIC_FAMILY


# Images.

# The assumed side length in pixels of an image of unknown size.
_DEFAULT_IMAGE_SIDE = 1_024
_CROP_DIVISOR = 1.5


def count_image_tokens(profile: ImageProfile, width: int, height: int) -> int:
    """Return the number of tokens of an image. An image of unknown size counts as 1,024 by 1,024 pixels."""
    if width <= 0 or height <= 0:
        width = height = _DEFAULT_IMAGE_SIDE
    match profile.rule:
        case ImageTokenRule.PATCHES:
            units = _count_patches(profile, width, height)
        case ImageTokenRule.TILES:
            units = _count_tiles(profile, width, height)
        case ImageTokenRule.CROPS:
            units = _count_crops(profile, width, height)
        case ImageTokenRule.FLAT:
            units = 1
    return profile.base + ceil(round(units * profile.weight, 6))


def _count_patches(profile: ImageProfile, width: float, height: float) -> int:
    """Return how many squares cover the image after it is scaled to the longest side and to the budget."""
    scale = min(1.0, profile.fit / max(width, height)) if profile.fit else 1.0
    width, height, unit = width * scale, height * scale, profile.unit
    patches = ceil(width / unit) * ceil(height / unit)
    if profile.budget is None or patches <= profile.budget:
        return patches
    shrink = sqrt(profile.budget * unit**2 / (width * height))
    across, down = width * shrink / unit, height * shrink / unit
    # Both sides shrink by the same factor, until the side that loses more to rounding is a whole number of squares.
    shrink = min(max(1, floor(across)) / across, max(1, floor(down)) / down, 1.0)
    return min(profile.budget, ceil(round(across * shrink, 6)) * ceil(round(down * shrink, 6)))


def _count_tiles(profile: ImageProfile, width: float, height: float) -> int:
    fit = min(1.0, profile.fit / max(width, height)) if profile.fit else 1.0
    short = min(1.0, profile.short / (min(width, height) * fit)) if profile.short else 1.0
    return ceil(width * fit * short / profile.unit) * ceil(height * fit * short / profile.unit)


def _count_crops(profile: ImageProfile, width: int, height: int) -> int:
    if profile.fit is not None and max(width, height) <= profile.fit:
        return 1
    crop = min(max(floor(min(width, height) / _CROP_DIVISOR), profile.short or 1), profile.unit)
    return ceil(width / crop) * ceil(height / crop)


def image_rejection_reason(profile: ImageProfile, present_images: Sequence[ImageData], image: ImageData) -> str:
    """Return why a request with the images ``present_images`` cannot contain another image. Empty if it can."""
    return next(_iter_image_problems(profile, present_images, image), "")


def _iter_image_problems(profile: ImageProfile, present_images: Sequence[ImageData], image: ImageData) -> Iterator[str]:
    longest, size, all_of_them = max(image.width, image.height), _count_base64_bytes(image), (*present_images, image)
    if profile.types and image.media_type not in profile.types:
        yield f"it is {image.media_type}, and the model takes {', '.join(profile.types)}"
    if profile.size is not None and size > profile.size:
        yield f"it has {size:,} bytes in base64, and the model takes {profile.size:,}"
    if profile.edge is not None and longest > profile.edge:
        yield f"it is {longest:,} pixels long, and the model takes {profile.edge:,}"
    if profile.count is not None and len(all_of_them) > profile.count:
        yield f"the request has {len(present_images):,} pictures, and the model takes {profile.count:,}"
    if profile.crowd is not None and profile.crowd_edge is not None and len(all_of_them) > profile.crowd:
        longest = max(max(one.width, one.height) for one in all_of_them)
        if longest > profile.crowd_edge:
            few = f"with more than {profile.crowd} pictures the model takes {profile.crowd_edge:,} pixels a side"
            yield f"{few}, and one is {longest:,} pixels long"
    total = sum(map(_count_base64_bytes, all_of_them))
    if profile.payload is not None and total > profile.payload:
        yield f"all pictures have {total:,} bytes in base64 with it, and the model takes {profile.payload:,}"


def _count_base64_bytes(image: ImageData) -> int:
    """Return the size of an image in base64."""
    return -(-len(image.data) // 3) * 4


# The counter, with one shared cache for all estimated families.


class OfflineTokenCounter:
    """Counts tokens with o200k_base: exact for OpenAI, an estimate with a stated error for other providers.

    A model with a local weights file is counted with its own vocabulary. For other models ``accepts_images`` returns
    whether they accept images, and ``get_image_profile`` returns how they count images and which images they accept.
    """

    def __init__(
        self,
        *,
        accepts_images: Callable[[str], bool] = lambda _model: True,
        get_image_profile: Callable[[str], ImageProfile] = lambda _model: GENERIC_IMAGE_PROFILE,
    ) -> None:
        self._accepts_images = accepts_images
        self._get_image_profile = get_image_profile
        self._memo = TokenCountMemo()
        self._family_tokenizers: dict[str, Tokenizer] = {}
        self._local_tokenizers: dict[str, tuple[ModelTokenizer, Tokenizer]] = {}
        self._remote_tokenizers: dict[str | None, Tokenizer] = {}

    def get_tokenizer(self, model: str | None) -> Tokenizer:
        known = self._remote_tokenizers.get(model)
        return known if known is not None else self._find_tokenizer(model)

    def _find_tokenizer(self, model: str | None) -> Tokenizer:
        own = (_find_plugin_tokenizer(model) or self._local_tokenizer(model)) if model else None
        if own is not None:
            return own
        tokenizer = self._get_family_tokenizer(
            get_tokenizer_family(model), GENERIC_IMAGE_PROFILE if model is None else self._get_image_profile(model)
        )
        if model is not None and tokenizer.supports_images and not self._accepts_images(model):
            # Tokenizers are compared by name, so one that counts differently needs another name.
            tokenizer = replace(tokenizer, name=f"{tokenizer.name}, blind", supports_images=False)
        # A local model is looked up every time, because its weights file may appear at any moment.
        if model is None or not is_local_model(model):
            self._remote_tokenizers[model] = tokenizer
        return tokenizer

    def _local_tokenizer(self, model: str) -> Tokenizer | None:
        """Return the tokenizer of a local model.

        None for other models, and if the weights file is missing or its vocabulary is not supported.
        """
        path = locate_weights(model)
        tokens = _open_tokenizer(path) if path is not None else None
        if tokens is None:
            return None
        # The file may appear, vanish or be replaced during a conversation. An unchanged file yields the same object, so
        # the identity check keeps its tokenizer.
        known = self._local_tokenizers.get(model)
        if known is None or known[0] is not tokens:
            known = self._local_tokenizers[model] = (tokens, _from_model_tokenizer(tokens))
        return known[1]

    def _get_family_tokenizer(self, family: TokenizerFamily, image_profile: ImageProfile) -> Tokenizer:
        # A tokenizer that counts images differently needs another name too.
        name = (
            family.name if image_profile is GENERIC_IMAGE_PROFILE else f"{family.name}, {image_profile.name} pictures"
        )
        if name not in self._family_tokenizers:
            self._family_tokenizers[name] = self._build_tokenizer(name, family, image_profile)
        return self._family_tokenizers[name]

    def _build_tokenizer(self, name: str, family: TokenizerFamily, image_profile: ImageProfile) -> Tokenizer:
        return Tokenizer(
            name=name,
            count=self._memo.count if family.factor == 1 else partial(self._count_scaled, family.factor),
            encode=encode,
            count_image=partial(count_image_tokens, image_profile),
            image_rejection=partial(image_rejection_reason, image_profile),
            tokens_per_message=family.tokens_per_message,
            tokens_per_request=family.tokens_per_request,
            count_factor=family.factor,
            supports_images=family.accepts_images,
        )

    def _count_scaled(self, factor: float, text: str) -> int:
        return ceil(self._memo.count(text) * factor)


def _find_plugin_tokenizer(model: str) -> Tokenizer | None:
    """Return the tokenizer of the plugin that counts for this model, or None."""
    for name, plugin in find_plugins(PluginGroup.TOKEN_COUNTERS).items():
        prefixes: Sequence[str] | None = call_plugin(
            PluginGroup.TOKEN_COUNTERS, name, partial(getattr, plugin, "prefixes"), is_right=_are_texts
        )
        if prefixes and model.startswith(tuple(prefixes)):
            return Tokenizer(
                name=f"plugin {name}",
                count=partial(_count_with_plugin, name, plugin),
                encode=encode,
                count_image=partial(count_image_tokens, GENERIC_IMAGE_PROFILE),
                tokens_per_message=GENERIC_FAMILY.tokens_per_message,
                tokens_per_request=GENERIC_FAMILY.tokens_per_request,
                count_factor=1.0,
            )
    return None


def _are_texts(given: Sequence[str]) -> bool:
    return not isinstance(given, str) and all(isinstance(one, str) and one for one in given)


def _count_with_plugin(name: str, plugin: TokenCounterPlugin, text: str) -> int:
    """Return what the plugin counts; o200k's count once it has failed, so that a conversation goes on."""
    if name in find_plugins(PluginGroup.TOKEN_COUNTERS):
        counted = call_plugin(
            PluginGroup.TOKEN_COUNTERS,
            name,
            lambda: plugin.count(text),
            is_right=lambda given: isinstance(given, int) and given >= (1 if text else 0),
        )
        if counted is not None:
            return counted
    return len(encode(text))


def _from_model_tokenizer(tokens: ModelTokenizer) -> Tokenizer:
    return Tokenizer(
        name=tokens.name,
        count=tokens.count,
        encode=tokens.encode,
        count_image=partial(count_image_tokens, GENERIC_IMAGE_PROFILE),
        tokens_per_message=tokens.tokens_per_message,
        tokens_per_request=tokens.tokens_per_request,
        count_factor=1.0,
        supports_images=False,
    )


def _open_tokenizer(path: Path) -> ModelTokenizer | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return _open_tokenizer_version(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4)
def _open_tokenizer_version(path: Path, size: int, modified: int) -> ModelTokenizer | None:
    """Return the vocabulary of one version of a file, or None if it is not supported. Opening one takes 0.2 s."""
    del size, modified  # parts of the cache key: a replaced file is read again
    vocabulary = read_vocabulary(path)
    return build_tokenizer(vocabulary) if vocabulary is not None else None
