"""Decide for how long a provider should cache a system prompt that many conversations begin with.

Conversations with the same model, tools and system prompt share one cache entry. Some providers sell a second, longer
lifetime at a higher price. It pays if the prefix is often used again after the short lifetime and before the long one.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.turn import LayoutPlan
from lamella.core.text.content import canonical_json, hash_text
from lamella.core.values import replace

# How many gaps between uses are remembered. Older ones say little about what comes next.
MAX_REMEMBERED_GAPS = 20


class PrefixUses(Struct, frozen=True, kw_only=True):
    """The uses of a shared prefix, over all conversations of a store.

    Attributes:
        last: When it was sent last; None if that is unknown.
        gaps: Seconds between the last uses, oldest first.
        has_long_lifetime: Whether the last use asked for the longer lifetime.
    """

    last: datetime | None = None
    gaps: tuple[float, ...] = ()
    has_long_lifetime: bool = False

    def with_use(self, at: datetime, *, has_long_lifetime: bool) -> "PrefixUses":
        """Return the uses after one more; a use that is older than the last one changes nothing."""
        if self.last is not None and at < self.last:
            return self
        gap = () if self.last is None else (round((at - self.last).total_seconds(), 1),)
        return PrefixUses(last=at, gaps=(*self.gaps, *gap)[-MAX_REMEMBERED_GAPS:], has_long_lifetime=has_long_lifetime)

    def is_cached(self, profile: CacheProfile, at: datetime | None) -> bool:
        """Return whether the provider still has the prefix at a time, as far as that is known."""
        if self.last is None or at is None or profile.lifetime is None:
            return False
        lasts = profile.longer[0] if profile.longer and self.has_long_lifetime else profile.lifetime
        return (at - self.last).total_seconds() <= lasts


def shared_prefix_key(model: str | None, tools: Sequence[ToolDefinition], system: Sequence[str]) -> str:
    """Return the key of the prefix that requests with this model, these tools and this system prompt share."""
    return hash_text(
        canonical_json([model, [[tool.name, tool.description, tool.parameters] for tool in tools], list(system)])
    )


def is_long_lifetime_worth_it(gaps: Sequence[float], profile: CacheProfile) -> bool:
    """Return whether writing a prefix for the longer lifetime costs less than writing it again after each short one.

    The longer lifetime saves a write for each gap between the two lifetimes. For each gap beyond both, the write
    was more expensive for nothing. One gap of each kind is added, so that a new prefix is judged by the prices alone.
    """
    if profile.longer is None or profile.lifetime is None:
        return False
    seconds, write_long = profile.longer
    between = 1 + sum([profile.lifetime < gap <= seconds for gap in gaps])
    beyond = 1 + sum([gap > seconds for gap in gaps])
    return between * (profile.write - profile.read) > beyond * (write_long - profile.write)


def with_shared_prefix(
    layout_plan: LayoutPlan, uses: PrefixUses, profile: CacheProfile, *, at: datetime | None
) -> LayoutPlan:
    """Return a plan that asks for the longer lifetime for the system message if that pays.

    The plan must have a breakpoint after the system message. If other conversations sent the prefix, the cache serves
    it although this conversation has no valid entry.
    """
    if 0 not in layout_plan.breakpoints:
        return layout_plan
    if layout_plan.cached_message is None and uses.is_cached(profile, at):
        layout_plan = replace(layout_plan, cached_message=0)
    # The gap before this request counts, too.
    gaps = uses.gaps if at is None else uses.with_use(at, has_long_lifetime=False).gaps
    if layout_plan.long_lifetime_until is None and is_long_lifetime_worth_it(gaps, profile):
        layout_plan = replace(layout_plan, long_lifetime_until=0)
    return layout_plan
