"""What converters take and give, on both sides of the process that they run in."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import NamedTuple


class FileForm(StrEnum):
    """What bytes are taken for; each has a converter."""

    PDF = "pdf"
    DOCUMENT = "document"
    SLIDES = "slides"
    SHEETS = "sheets"
    PAGE = "page"


class ConvertedText(NamedTuple):
    """What a converter found in some bytes: a title, which may be empty, and the text."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionLimits:
    """How long one conversion may take, how many bytes of memory it may use, and how many characters it may give."""

    seconds: float = 60
    memory: int = 1_000_000_000
    characters: int = 5_000_000

    def name(self) -> str:
        """The limits in one text, to tell what was refused under others."""
        return ",".join(f"{value:g}" for value in asdict(self).values())


class ConversionFault(Exception):  # noqa: N818 - no error of ours: it crosses from the child as words
    """Why bytes cannot be converted: what is wrong with them, as the rest of a sentence, and what to do."""

    def __init__(self, told: str, hint: str, *, too_large: bool = False) -> None:
        super().__init__(told)
        self.told = told
        self.hint = hint
        self.too_large = too_large
