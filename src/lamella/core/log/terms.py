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


class ImageNotes(StrEnum):
    """What becomes of a note that embeds pictures once its turn is over: its text goes on, or a handle."""

    TEXT = "text"
    HANDLE = "handle"


# It was a switch once, and events, transcripts and settings of that time have it as true or false.
IMAGE_NOTES_SWITCH = {True: ImageNotes.TEXT, False: ImageNotes.HANDLE}


class Terms(Struct, frozen=True, kw_only=True, gc=False):
    """The terms of a turn: a field here is a setting that the bytes of a request follow from.

    ``history_turns`` is how many turns a history mode shows, none for as many as it usually does; ``image_notes`` says
    what the library holds of notes that embed pictures; turns from before there was a choice leave a handle.
    """

    layout: Layout = Layout.LIBRARY
    carry_forward: CarryForward = CarryForward.FULL
    history: History = History.FULL
    history_turns: int | None = None
    image_notes: ImageNotes = ImageNotes.HANDLE


class Rewrite(StrEnum):
    """How the history before a turn came to differ from what was sent last."""

    HISTORY_EDITED = "history_edited"
    BRANCH = "branch"
