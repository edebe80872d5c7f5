"""Pictures: what one weighs by the rule of its model, and whether a request takes it."""

from collections.abc import Iterator, Sequence
from math import ceil, floor, sqrt

from lamella.core.artifacts.model import Image
from lamella.profiles import PictureProfile, PictureRule

# What a picture of unknown size counts as, a side.
_UNKNOWN = 1_024
_LARGEST_SHARE = 1.5


def count_picture(profile: PictureProfile, width: int, height: int) -> int:
    """What a picture weighs in tokens; one of unknown size as one of 1,024 by 1,024."""
    if width <= 0 or height <= 0:
        width = height = _UNKNOWN
    match profile.rule:
        case PictureRule.PATCHES:
            units = _count_patches(profile, width, height)
        case PictureRule.TILES:
            units = _count_tiles(profile, width, height)
        case PictureRule.CROPS:
            units = _count_crops(profile, width, height)
        case PictureRule.FLAT:
            units = 1
    return profile.base + ceil(round(units * profile.weight, 6))


def _count_patches(profile: PictureProfile, width: float, height: float) -> int:
    """Squares that cover the picture once it is scaled to the longest side and to the budget."""
    scale = min(1.0, profile.fit / max(width, height)) if profile.fit else 1.0
    width, height, unit = width * scale, height * scale, profile.unit
    patches = ceil(width / unit) * ceil(height / unit)
    if profile.budget is None or patches <= profile.budget:
        return patches
    shrink = sqrt(profile.budget * unit**2 / (width * height))
    across, down = width * shrink / unit, height * shrink / unit
    # Both sides shrink until the one that is cut off further is a whole number of squares.
    shrink = min(max(1, floor(across)) / across, max(1, floor(down)) / down, 1.0)
    return min(profile.budget, ceil(round(across * shrink, 6)) * ceil(round(down * shrink, 6)))


def _count_tiles(profile: PictureProfile, width: float, height: float) -> int:
    fit = min(1.0, profile.fit / max(width, height)) if profile.fit else 1.0
    short = min(1.0, profile.short / (min(width, height) * fit)) if profile.short else 1.0
    return ceil(width * fit * short / profile.unit) * ceil(height * fit * short / profile.unit)


def _count_crops(profile: PictureProfile, width: int, height: int) -> int:
    if profile.fit is not None and max(width, height) <= profile.fit:
        return 1
    crop = min(max(floor(min(width, height) / _LARGEST_SHARE), profile.short or 1), profile.unit)
    return ceil(width / crop) * ceil(height / crop)


def find_refusal(profile: PictureProfile, there: Sequence[Image], image: Image) -> str:
    """Why a request with these pictures does not take another; nothing where it does."""
    return next(_list_refusals(profile, there, image), "")


def _list_refusals(profile: PictureProfile, there: Sequence[Image], image: Image) -> Iterator[str]:
    longest, size, all_of_them = max(image.width, image.height), _encoded(image), (*there, image)
    if profile.types and image.media_type not in profile.types:
        yield f"it is {image.media_type}, and the model takes {', '.join(profile.types)}"
    if profile.size is not None and size > profile.size:
        yield f"it has {size:,} bytes in base64, and the model takes {profile.size:,}"
    if profile.edge is not None and longest > profile.edge:
        yield f"it is {longest:,} pixels long, and the model takes {profile.edge:,}"
    if profile.count is not None and len(all_of_them) > profile.count:
        yield f"the request has {len(there):,} pictures, and the model takes {profile.count:,}"
    if profile.crowd is not None and profile.crowd_edge is not None and len(all_of_them) > profile.crowd:
        longest = max(max(one.width, one.height) for one in all_of_them)
        if longest > profile.crowd_edge:
            few = f"with more than {profile.crowd} pictures the model takes {profile.crowd_edge:,} pixels a side"
            yield f"{few}, and one is {longest:,} pixels long"
    total = sum(map(_encoded, all_of_them))
    if profile.payload is not None and total > profile.payload:
        yield f"all pictures have {total:,} bytes in base64 with it, and the model takes {profile.payload:,}"


def _encoded(image: Image) -> int:
    """How many letters a picture is sent as."""
    return -(-len(image.data) // 3) * 4
