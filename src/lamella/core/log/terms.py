"""Terms: what one turn's request depends on beyond what was said. They are written down with the turn."""

from enum import StrEnum

from msgspec import Struct


class Layout(StrEnum):
    """Where the library physically stands."""

    LIBRARY = "library"
    IN_PLACE = "in_place"


class CarryForward(StrEnum):
    """What becomes of an artifact's text once its turn is over."""

    FULL = "full"
    PREVIEW = "preview"


class History(StrEnum):
    """How much of the earlier talk L4 holds: all of it, the last turns, or the last turns after a short summary."""

    FULL = "full"
    WINDOW = "window"
    STRIP = "strip"


class Effort(StrEnum):
    """How much a model is to think before it answers; what each word means is the provider's business."""

    DEFAULT = "default"
    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class Terms(Struct, frozen=True, kw_only=True, gc=False):
    """The terms of a turn: a field here is a setting that the bytes of a request follow from.

    ``history_turns`` is how many turns a history mode shows, none for as many as it usually does; ``image_notes`` says
    whether the text of notes that embed pictures goes into the library. Without a ``temperature`` the provider's own
    holds, as with the default ``reasoning_effort``.
    """

    layout: Layout = Layout.LIBRARY
    carry_forward: CarryForward = CarryForward.FULL
    history: History = History.FULL
    history_turns: int | None = None
    image_notes: bool = False
    temperature: float | None = None
    reasoning_effort: Effort = Effort.DEFAULT


class Rewrite(StrEnum):
    """How the history before a turn came to differ from what was sent last."""

    HISTORY_EDITED = "history_edited"
    BRANCH = "branch"
