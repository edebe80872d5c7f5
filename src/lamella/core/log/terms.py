"""Terms: what one turn's request depends on beyond what was said. They are written down with the turn."""

from enum import StrEnum

from msgspec import Struct


class Layout(StrEnum):
    """Where the library physically stands."""

    LIBRARY = "library"
    IN_PLACE = "in_place"
    AUTO = "auto"


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


class Attachments(StrEnum):
    """How long something stays attached: for its turn, or until it is detached."""

    TURN = "turn"
    STICKY = "sticky"


class CacheMarks(StrEnum):
    """Who marks how far a cache is to reach, where it wants marks: Lamella, or the provider after the last block."""

    EXPLICIT = "explicit"
    AUTOMATIC = "automatic"


class ImageNotes(StrEnum):
    """What becomes of a note that embeds pictures once its turn is over: its text goes on, or a handle."""

    TEXT = "text"
    HANDLE = "handle"


class SecretRule(StrEnum):
    """What becomes of text that looks like a secret and would leave this process. No byte sent follows from it."""

    WARN = "warn"
    REFUSE = "refuse"
    OFF = "off"


# It was a switch once, and events, transcripts and settings of that time have it as true or false.
IMAGE_NOTES_SWITCH = {True: ImageNotes.TEXT, False: ImageNotes.HANDLE}


class Terms(Struct, frozen=True, kw_only=True, gc=False):
    """The terms of a turn: a field here is a setting that the bytes of a request follow from.

    ``history_turns`` is how many turns a history mode shows, none for as many as it usually does; ``image_notes`` says
    what the library holds of notes that embed pictures; turns from before there was a choice leave a handle. Without a
    ``temperature`` the provider's own holds, as with the default ``reasoning_effort``. ``linger`` is for how many turns
    something stays in the working set that is no longer attached. ``runner`` is the way of answering. ``tool_output``
    is how many characters of what a tool gave are shown; turns from before there was a bound show all of it. ``cues``
    are words by which standing wishes are known beside those that ship.
    """

    layout: Layout = Layout.LIBRARY
    carry_forward: CarryForward = CarryForward.FULL
    history: History = History.FULL
    history_turns: int | None = None
    image_notes: ImageNotes = ImageNotes.HANDLE
    temperature: float | None = None
    reasoning_effort: Effort = Effort.DEFAULT
    attachments: Attachments = Attachments.TURN
    linger: int = 2
    cache_marks: CacheMarks = CacheMarks.EXPLICIT
    runner: str = "chat"
    tool_output: int | None = None
    cues: tuple[str, ...] = ()


class Rewrite(StrEnum):
    """How the history before a turn came to differ from what was sent last."""

    HISTORY_EDITED = "history_edited"
    BRANCH = "branch"
