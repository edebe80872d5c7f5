"""Rules of compaction: which steps may run, in which order, and how far each may go."""

from collections.abc import Mapping

from msgspec import Struct

from lamella.core.artifacts.model import Kind
from lamella.core.compaction.stages import StageRange
from lamella.core.log.receipt import STEP_ORDER, StepName
from lamella.core.text.outline import PREVIEW_OVER
from lamella.core.text.said.wishes import CUES
from lamella.errors import SettingError

# It stands in one sentence of what a summariser is asked.
_LONGEST_WISH = 80


class KindRules(Struct, frozen=True, kw_only=True):
    """How artifacts of a kind may shrink: over how many characters to an outline, and whether at all.

    ``handle_after`` is for how many turns one lingers, where that is not as the terms say.
    """

    preview_over: int = PREVIEW_OVER
    handle_after: int | None = None
    shrink: bool = True

    def __post_init__(self) -> None:
        if self.preview_over < 0 or (self.handle_after or 0) < 0:
            raise SettingError(
                f"preview_over {self.preview_over} and handle_after {self.handle_after} cannot be below 0.",
                hint="Give how many characters a text may have, and how many turns it may go unattached.",
            )


class SummaryRules(Struct, frozen=True, kw_only=True):
    """How much a summary may read and write, in tokens; ``exact`` bounds the exact words that ride beside it.

    ``turns`` is how many earlier turns are worth one, ``item`` how long something attached now must be. Without a
    ``language`` it is that of the talk; ``form`` says what is written, in the words of whoever asks for it. With
    ``whole_turns`` it stands in for what the user typed as well, otherwise for replies only.
    """

    reads: int = 16_000
    writes: int = 500
    exact: int = 500
    turns: int = 3
    item: int = 2_000
    language: str = ""
    form: str = "3 to 5 short bullets"
    whole_turns: bool = False

    def __post_init__(self) -> None:
        for name, words in (("language", self.language), ("form", self.form)):
            if len(words) > _LONGEST_WISH or not words.isprintable() or (name == "form" and not words.strip()):
                raise SettingError(
                    f"The {name} of a summary has {len(words):,} characters, or more than one line, or none.",
                    hint=f"Say it in at most {_LONGEST_WISH} characters on one line, as in Indonesian, or 5 bullets.",
                )
        if min(self.reads, self.writes, self.turns, self.item) < 1 or self.exact < 0:
            raise SettingError(
                f"A summary cannot read {self.reads}, write {self.writes} and keep {self.exact} tokens of "
                f"{self.turns} turns.",
                hint="Give whole numbers above 0; exact may be 0.",
            )


class ChainRules(Struct, frozen=True, kw_only=True):
    """How the chain runs. ``words`` are acknowledgements beside those that ship; ``kinds`` override ``every_kind``.

    ``stages`` are those that are done, and ``stage_after`` is the last message before the one that is being worked on,
    empty where that is the first; none where work has no stages. With ``keep_stage`` no turn of that is expendable.
    ``cues`` are what standing wishes are known by.
    """

    steps: tuple[StepName, ...] = STEP_ORDER
    words: frozenset[str] = frozenset()
    every_kind: KindRules = KindRules()
    kinds: Mapping[Kind, KindRules] = {}
    summary: SummaryRules = SummaryRules()
    stages: tuple[StageRange, ...] = ()
    stage_after: str | None = None
    keep_stage: bool = False
    cues: frozenset[str] = CUES

    def __post_init__(self) -> None:
        if len(set(self.steps)) != len(self.steps):
            raise SettingError(
                f"A step is named twice: {', '.join(self.steps)}.", hint="Name each step of the chain once."
            )
        if StepName.RULES in self.steps:
            raise SettingError(
                "rules is no step of the chain: wishes of messages that went always stay.",
                hint="Leave it out of steps.",
            )

    @property
    def own_cues(self) -> tuple[str, ...]:
        """The cues beside those that ship, in one order."""
        return tuple(sorted(self.cues - CUES))

    def of_kind(self, kind: Kind) -> KindRules:
        return self.kinds.get(kind, self.every_kind)
