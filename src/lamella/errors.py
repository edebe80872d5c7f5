"""Every error Lamella raises, in one tree.

LamellaError
├── BadInputError            what was given cannot be used; the caller can mend it
│   ├── TranscriptError        bad_transcript      the transcript is not JSON, or not of the known shape
│   ├── SettingError           bad_setting         a setting has no such value, or values contradict each other
│   ├── ArtifactError          bad_artifact        an attachment lacks what its kind needs
│   ├── TextError              bad_text            text that cannot be written as UTF-8
│   ├── SecretError            secret_found        text that looks like a secret would leave this process
│   ├── UntrustedError         untrusted           only somebody else's words name the place where something would go
│   ├── CallError              bad_call            calls in an order that makes no sense
│   ├── WorkflowError          bad_workflow        a workflow cannot be used, or a stage cannot be done yet
│   ├── WriteRefusedError      write_refused       a note is not written: nobody allowed it, or it is not what it was
│   ├── DivergedError          diverged            a conversation is there already, with another history
│   ├── UsageError             bad_usage           the command line was given words it does not know
│   ├── SourceMissingError     source_missing      a file, folder or tag is not there
│   ├── SourceOutsideError     source_outside      a path leaves the vault
│   ├── SourceUnreadableError  source_unreadable   a file is there and cannot be read as what it should be
│   ├── SourceTooLargeError    source_too_large    a file is larger than Lamella reads
│   ├── SourceRefusedError     source_refused      an address that nothing is fetched from
│   ├── SourceUnreachableError source_unreachable  nothing answers at an address, or not as it should
│   ├── ExtraMissingError      extra_missing       what reads this is an extra, and is not installed
│   ├── NotAvailableError      not_available       a documented choice that is not offered here
│   └── ProviderRefusedError   provider_refused    the provider does not take the request as it is
│       ├── KeyRefusedError        key_refused         the provider does not know the key, or it may not do this
│       ├── ModelMissingError      model_missing       the provider has no such model
│       ├── AddressError           bad_address         what answers at the address is not this provider's API
│       ├── ContextOverflowError   context_overflow    the provider says the request does not fit the model
│       └── SdkMissingError        sdk_missing         the provider's package is not installed
├── StoreError                 store_error         conversations could not be read or written
│   ├── ConflictError          conflict            someone else wrote to the conversation first
│   ├── AnswerAsideError       answer_aside        an answer came when the conversation had gone on; it is kept beside
│   ├── ErasedError            erased              the conversation was erased
│   ├── StoreUnavailableError  store_unavailable   the disk, file or server did not take it; trying again may work
│   ├── StoreDamagedError      store_damaged       what is stored is not what was written
│   └── StoreVersionError      store_version       the store was written by a newer version, or needs migrating
├── ProviderError              provider_error      the provider did not do its part
│   ├── ReplyBrokenError       reply_broken        the answer stopped short, or is not what it should be
│   └── ProviderRetryError     provider_retry      trying again later may work
│       ├── RateLimitedError       rate_limited        too many requests or tokens in too short a time
│       ├── OverloadedError        overloaded          the provider has more to do than it can
│       ├── ProviderTimeoutError   provider_timeout    nothing came for too long
│       └── UnreachableError       unreachable         no connection to the provider
├── IndexUnavailableError      index_unavailable   the index of a vault cannot be read or written
├── BudgetExceededError        budget_exceeded     the request does not fit, and nothing more may shrink
└── LawBrokenError             law_broken          an envelope violates a law: a bug in Lamella
"""

from collections.abc import Sequence
from typing import ClassVar

from lamella.doors import PYTHON, Door, Hint


class LamellaError(Exception):
    """What went wrong, with numbers, and a hint that says what to do next.

    ``advice`` is the hint before a door words it; ``hint`` is how it reads in a program.
    """

    code: ClassVar[str] = "lamella_error"

    def __init__(self, message: str, *, hint: Hint) -> None:
        super().__init__(message)
        self.message = message
        self.advice = hint
        # A traceback shows notes, so a program that does not catch this tells its author what to do, too.
        self.add_note(f"hint: {self.hint}")

    @property
    def hint(self) -> str:
        return self.hint_at(PYTHON)

    @hint.setter
    def hint(self, hint: Hint) -> None:
        self.advice = hint

    def hint_at(self, door: Door) -> str:
        """What to do next, in the words of a door."""
        return self.advice if isinstance(self.advice, str) else self.advice(door)


class BadInputError(LamellaError):
    """What was given cannot be used; nothing was changed."""

    code = "bad_input"


class TranscriptError(BadInputError):
    """The transcript is not JSON, or not of the known shape."""

    code = "bad_transcript"


class SettingError(BadInputError):
    """A setting has no such value, or two settings contradict each other."""

    code = "bad_setting"


class ArtifactError(BadInputError):
    """An attachment lacks what its kind needs."""

    code = "bad_artifact"


class TextError(BadInputError):
    """Text that cannot be written as UTF-8."""

    code = "bad_text"


class SecretError(BadInputError):
    """Text that looks like a secret would leave for a model elsewhere; ``places`` say where it stands, never what."""

    code = "secret_found"

    def __init__(self, places: Sequence[str], *, model: str) -> None:
        super().__init__(
            f"{_list_some(places)}, and would be sent to {model}. Nothing was sent or written down.",
            hint="Take it out of the text, or detach what holds it. If it is none, set secrets to warn and ask again.",
        )
        self.places = tuple(places)


class UntrustedError(BadInputError):
    """A ``place`` that only somebody else's words name: a project's file, or a conversation that may be theirs."""

    code = "untrusted"
    # Whether the person was asked about it, or could not be: nobody is asked twice.
    settled = False

    def __init__(self, message: str, *, hint: Hint, field: str, place: str) -> None:
        super().__init__(message, hint=hint)
        self.field, self.place = field, place


class CallError(BadInputError):
    """Calls in an order that makes no sense, such as a reply to nothing."""

    code = "bad_call"


class WorkflowError(BadInputError):
    """A workflow cannot be used as it is, or a stage of it cannot be done, submitted or approved yet."""

    code = "bad_workflow"


class WriteRefusedError(BadInputError):
    """A note is left as it is: nobody allowed the change, it changed meanwhile, or it is no place to write to."""

    code = "write_refused"


class DivergedError(BadInputError):
    """A conversation that is brought in is there already, with another history."""

    code = "diverged"


class UsageError(BadInputError):
    """The command line was given words it does not know."""

    code = "bad_usage"


class SourceMissingError(BadInputError):
    """A file, folder or tag is not there."""

    code = "source_missing"


class SourceOutsideError(BadInputError):
    """A path leaves the vault, by itself or through a link."""

    code = "source_outside"


class SourceUnreadableError(BadInputError):
    """A file is there and cannot be read as what it should be."""

    code = "source_unreadable"


class SourceTooLargeError(BadInputError):
    """A file is larger than Lamella reads."""

    code = "source_too_large"


class SourceRefusedError(BadInputError):
    """An address that nothing is fetched from: in a private network, with a password, of another protocol."""

    code = "source_refused"


class SourceUnreachableError(BadInputError):
    """Nothing answers at an address, or what answers fails; trying again later may work."""

    code = "source_unreachable"


class ExtraMissingError(BadInputError):
    """The package that reads this comes with an extra, and is not installed."""

    code = "extra_missing"


class NotAvailableError(BadInputError):
    """A documented choice that is not offered here."""

    code = "not_available"


class ProviderRefusedError(BadInputError):
    """The provider does not take the request as it is; it was not billed."""

    code = "provider_refused"


class KeyRefusedError(ProviderRefusedError):
    """The provider does not know the key, or the key may not do this."""

    code = "key_refused"


class ModelMissingError(ProviderRefusedError):
    """The provider has no such model, or not for this key."""

    code = "model_missing"


class AddressError(ProviderRefusedError):
    """Something answers at the address, and it is not this provider's API."""

    code = "bad_address"


class ContextOverflowError(ProviderRefusedError):
    """The provider says that the request does not fit the model."""

    code = "context_overflow"


class SdkMissingError(ProviderRefusedError):
    """The package that speaks to this provider is not installed."""

    code = "sdk_missing"


class StoreError(LamellaError):
    """Conversations could not be read or written; what was acknowledged is safe."""

    code = "store_error"


class ConflictError(StoreError):
    """Someone else wrote to the conversation first; nothing was written."""

    code = "conflict"

    def __init__(self, *, conversation: str, expected: int, found: int) -> None:
        super().__init__(
            f"The conversation {conversation} has {found:,} events; {expected:,} were expected.",
            hint=lambda door: f"Someone else wrote to it. {door.load_again()}",
        )
        self.expected, self.found = expected, found


class AnswerAsideError(StoreError):
    """An answer came when the conversation had gone on; it is kept on a branch of its question, named ``answer``."""

    code = "answer_aside"

    def __init__(self, *, conversation: str, answer: str) -> None:
        name = conversation
        super().__init__(
            f"The conversation {name} went on before this answer came; the answer is kept on a branch of its "
            f"own, {answer}.",
            hint=lambda door: f"{door.show_chat(name, answer)} shows it; {door.go_to(name, answer)} goes on there.",
        )
        self.answer = answer


class ErasedError(StoreError):
    """The conversation was erased; only its tombstone is left."""

    code = "erased"


class StoreUnavailableError(StoreError):
    """The disk, file or server did not take it; nothing was lost, and trying again may work."""

    code = "store_unavailable"


class StoreDamagedError(StoreError):
    """What is stored is not what was written."""

    code = "store_damaged"


class StoreVersionError(StoreError):
    """The store was written by a newer version of Lamella, or must be migrated first."""

    code = "store_version"


class ProviderError(LamellaError):
    """The provider did not do its part; what had arrived before stays true."""

    code = "provider_error"


class ReplyBrokenError(ProviderError):
    """The answer stopped short, or is not what it should be."""

    code = "reply_broken"


class ProviderRetryError(ProviderError):
    """Trying again later may work. ``wait`` is how many seconds the provider asks for, if it says."""

    code = "provider_retry"

    def __init__(self, message: str, *, hint: Hint, wait: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.wait = wait


class RateLimitedError(ProviderRetryError):
    """Too many requests or tokens in too short a time."""

    code = "rate_limited"


class OverloadedError(ProviderRetryError):
    """The provider has more to do than it can."""

    code = "overloaded"


class ProviderTimeoutError(ProviderRetryError):
    """Nothing came from the provider for too long."""

    code = "provider_timeout"


class UnreachableError(ProviderRetryError):
    """No connection to the provider."""

    code = "unreachable"


class IndexUnavailableError(LamellaError):
    """The index of a vault cannot be read or written; the vault is as it was, and trying again may work."""

    code = "index_unavailable"


class BudgetExceededError(LamellaError):
    """The request does not fit the window; ``protected`` names what stays, ``expanded`` folders and tags in it."""

    code = "budget_exceeded"

    def __init__(
        self, *, needed: int, hard: int, limit: int, protected: Sequence[str], expanded: Sequence[str] = ()
    ) -> None:
        fewer = f"Attach fewer notes by their paths in place of {_list_some(expanded)}. " if expanded else ""
        super().__init__(
            f"The request needs {needed:,} tokens; at most {hard:,} of the {limit:,} that fit may be used.",
            hint=f"{fewer}Kept whatever happens: {_list_some(protected)}. Detach, drop or unpin one, shorten what is "
            "typed, or choose a larger window.",
        )
        self.needed, self.hard, self.limit = needed, hard, limit
        self.protected, self.expanded = tuple(protected), tuple(expanded)


def _list_some(names: Sequence[str], shown: int = 8) -> str:
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


class LawBrokenError(LamellaError):
    """An envelope violates a law: a bug in Lamella, never the caller's mistake."""

    code = "law_broken"

    def __init__(self, *, law: str, findings: Sequence[str]) -> None:
        super().__init__(
            f"The envelope breaks the law '{law}': {'; '.join(findings)}.",
            hint="This is a bug in Lamella. Please report it with the transcript that shows it.",
        )
        self.law, self.findings = law, tuple(findings)


def tell_install(extra: str) -> str:
    """How what is missing is installed. No index has this package, so that its name alone would find nothing."""
    return f'In the folder of the clone, install it with: pip install ".[{extra}]"'
