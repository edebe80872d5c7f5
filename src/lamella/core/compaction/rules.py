"""The compaction config, and workflow stages as compaction sees them.

``CompactionConfig`` says which steps may run, in which order, and how far each may go. ``resolve_stages`` turns stage
ranges, given by the ids of their first and last message, into the message ids of a branch.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from lamella.core.artifacts.model import ArtifactKind
from lamella.core.log.receipts import STEP_ORDER, CompactionStepName, ReplyInPrompt
from lamella.core.text.outline import PREVIEW_THRESHOLD_CHARS
from lamella.core.text.word_lists import NO_WORDS, WordLists
from lamella.errors import SettingError


class CompletedStage(Struct, frozen=True, kw_only=True):
    """A completed workflow stage, given by the ids of its first and last message.

    The decisions of the stage are in the system prompt (L1), so its messages can be removed.
    """

    stage: str
    label: str
    first: str
    last: str
    recent: bool = False


# A stage with the ids of all its messages, and a stage that is not on this branch with the reason.
StageMessages = tuple[CompletedStage, tuple[str, ...]]
MissingStage = tuple[CompletedStage, str]


def resolve_stages(
    completed_stages: Iterable[CompletedStage], message_ids: Sequence[str]
) -> tuple[tuple[StageMessages, ...], tuple[MissingStage, ...]]:
    """Resolve stage ranges to message ids, and list the ranges that are not on this branch.

    ``message_ids`` is every message id of the branch, oldest first, including messages that a compaction already
    removed.
    """
    index = {name: at for at, name in enumerate(message_ids)}
    stages: list[StageMessages] = []
    missing: list[MissingStage] = []
    for one in completed_stages:
        first, last = index.get(one.first), index.get(one.last)
        if first is None or last is None:
            gone = f"first message, {one.first}," if first is None else f"last message, {one.last},"
            missing.append((one, f"the stage {one.label} stays: its {gone} is not in this branch"))
        elif last < first:
            missing.append((one, f"the stage {one.label} stays: its first message comes after its last"))
        else:
            stages.append((one, tuple(message_ids[first : last + 1])))
    return tuple(stages), tuple(missing)


def current_stage_messages(last_message_before: str | None, message_ids: Sequence[str]) -> frozenset[str] | None:
    """Return the message ids of the current stage.

    ``last_message_before`` is the last message before that stage. None means that the conversation has no stages, and
    the result is None as well. If ``last_message_before`` is not on this branch, every message belongs to the current
    stage.
    """
    if last_message_before is None:
        return None
    return (
        frozenset(message_ids[message_ids.index(last_message_before) + 1 :])
        if last_message_before in message_ids
        else frozenset(message_ids)
    )


# Which steps may run, in which order, and how far each may go.

# These texts are inserted into one sentence of the prompt for the summary model, so they must be short.
_MAX_PHRASE_CHARS = 80


class KindCompactionConfig(Struct, frozen=True, kw_only=True):
    """The limits for shortening artifacts of one kind.

    Attributes:
        preview_over: Artifacts with more characters than this may be reduced to an outline.
        handle_after: For how many turns an artifact stays in the working set; None uses the turn settings.
        shrink: Whether artifacts of this kind may be shortened at all.
    """

    preview_over: int = PREVIEW_THRESHOLD_CHARS
    handle_after: int | None = None
    shrink: bool = True

    def __post_init__(self) -> None:
        if self.preview_over < 0 or (self.handle_after or 0) < 0:
            raise SettingError(
                f"preview_over {self.preview_over} and handle_after {self.handle_after} cannot be below 0.",
                hint="Give how many characters a text may have, and how many turns it may go unattached.",
            )


class SummaryConfig(Struct, frozen=True, kw_only=True):
    """The token limits, the language and the form of summaries.

    Attributes:
        max_exact_tokens: Token limit for the list of exact strings that is placed beside the summary.
        turns: How many earlier turns a summary has to cover at least.
        item: A current attachment is summarised only if it has more tokens than this.
        language: The language to write in; empty means the language of the conversation.
        form: The requested form, inserted into the prompt for the summary model.
        whole_turns: Whether a summary replaces the user's messages too. By default it replaces replies only.
        check_by_model: Whether a model has to confirm each statement of a summary.
    """

    max_input_tokens: int = 16_000
    max_output_tokens: int = 500
    max_exact_tokens: int = 500
    turns: int = 3
    item: int = 2_000
    language: str = ""
    form: str = "3 to 5 short bullets"
    whole_turns: bool = False
    check_by_model: bool = False

    def __post_init__(self) -> None:
        for name, words in (("language", self.language), ("form", self.form)):
            if len(words) > _MAX_PHRASE_CHARS or not words.isprintable() or (name == "form" and not words.strip()):
                raise SettingError(
                    f"The {name} of a summary has {len(words):,} characters, or more than one line, or none.",
                    hint=f"Say it in at most {_MAX_PHRASE_CHARS} characters on one line, as in Indonesian, or 5 bullets.",
                )
        if min(self.max_input_tokens, self.max_output_tokens, self.turns, self.item) < 1 or self.max_exact_tokens < 0:
            raise SettingError(
                f"A summary cannot read {self.max_input_tokens}, write {self.max_output_tokens} and keep "
                f"{self.max_exact_tokens} tokens of {self.turns} turns.",
                hint="Give whole numbers above 0; exact may be 0.",
            )


# Returns the ids of the replies to shorten first, best first. Ids that it leaves out follow in their usual order.
ChooseReplies = Callable[[Sequence[ReplyInPrompt]], Sequence[str]]


class CompactionConfig(Struct, frozen=True, kw_only=True):
    """The settings of the compaction chain.

    Attributes:
        steps: The steps that may run, in this order.
        extra_acknowledgements: Words that count as acknowledgements in addition to the built-in ones.
        default_kind: How artifacts may be shortened, unless ``kinds`` has an entry for their kind.
        stages: The completed workflow stages.
        current_stage_after: The last message before the current stage, empty if that is the first stage. None means
            that the conversation has no stages.
        protects_current_stage: Whether the turns of the current stage are protected from the step ``expendable``.
        words: Word lists for acknowledgements, directives and the order in which messages leave.
        choose_replies: Chooses the replies that the step ``replies`` shortens first.
    """

    steps: tuple[CompactionStepName, ...] = STEP_ORDER
    extra_acknowledgements: frozenset[str] = frozenset()
    default_kind: KindCompactionConfig = KindCompactionConfig()
    kinds: Mapping[ArtifactKind, KindCompactionConfig] = {}
    summary: SummaryConfig = SummaryConfig()
    stages: tuple[CompletedStage, ...] = ()
    current_stage_after: str | None = None
    protects_current_stage: bool = False
    words: WordLists = NO_WORDS
    choose_replies: ChooseReplies | None = None

    def __post_init__(self) -> None:
        if len(set(self.steps)) != len(self.steps):
            raise SettingError(
                f"A step is named twice: {', '.join(self.steps)}.", hint="Name each step of the chain once."
            )
        if CompactionStepName.RULES in self.steps:
            raise SettingError(
                "rules is no step of the chain: only receipts of earlier versions have it.",
                hint="Leave it out of steps.",
            )

    def for_kind(self, kind: ArtifactKind) -> KindCompactionConfig:
        """Return how artifacts of this kind may be shortened."""
        return self.kinds.get(kind, self.default_kind)
