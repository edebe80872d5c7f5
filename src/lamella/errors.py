"""All errors that Lamella raises: one tree below ``LamellaError``, each with a code, a message and a hint.

docs/reference/errors.md draws the tree with the code, the HTTP status and the remedy of each error.
"""

from collections.abc import Sequence
from typing import ClassVar

from lamella.hints import PYTHON_HINTS, Hint, Hints


class LamellaError(Exception):
    """The base of all errors: a message with the values involved, and a hint that says what to do next.

    ``advice`` is the hint before an interface words it. ``hint`` is the wording for Python programs.
    """

    code: ClassVar[str] = "lamella_error"
    # The first line of the docstring says what happened, and this what to do: docs/reference/errors.md shows both.
    remedy: ClassVar[str] = "Run the command again with `--debug` and report the output."

    def __init__(self, message: str, *, hint: Hint) -> None:
        super().__init__(message)
        self.message = message
        self.raw_hint = hint
        # A traceback shows notes, so the author of a program that does not catch this error sees the hint, too.
        self.add_note(f"hint: {self.hint}")

    @property
    def hint(self) -> str:
        return self.hint_for(PYTHON_HINTS)

    @hint.setter
    def hint(self, hint: Hint) -> None:
        self.raw_hint = hint

    def hint_for(self, hints: Hints) -> str:
        """Return the hint in the wording of an interface."""
        return self.raw_hint if isinstance(self.raw_hint, str) else self.raw_hint(hints)


class BadInputError(LamellaError):
    """The input cannot be used; nothing was changed."""

    code = "bad_input"
    remedy = "Correct the input that the message names."


class TranscriptError(BadInputError):
    """The transcript is not JSON, or does not have the known format."""

    code = "bad_transcript"
    remedy = "Compare the place that the message names, such as `turns[2].attach[0].path`, with the transcript format."


class SettingError(BadInputError):
    """A setting does not accept the value, or two settings contradict each other."""

    code = "bad_setting"
    remedy = "Correct the value in the file or variable that the message names."


class ArtifactError(BadInputError):
    """An attachment lacks a field that its kind needs."""

    code = "bad_artifact"
    remedy = "Give the attachment the fields of its kind."


class TextError(BadInputError):
    """Text cannot be encoded as UTF-8."""

    code = "bad_text"
    remedy = "Remove the character that the message names."


class SecretError(BadInputError):
    """Text that looks like a secret would be sent to a remote model.

    ``places`` says where the text is. The error never contains the text itself.
    """

    code = "secret_found"
    remedy = "Remove the text or detach the file, or set `secrets` to `warn`. Lamella sent nothing."

    def __init__(self, locations: Sequence[str], *, model: str) -> None:
        super().__init__(
            f"{_join_some(locations)}, and would be sent to {model}. Nothing was sent or written down.",
            hint="Take it out of the text, or detach what holds it. If it is none, set secrets to warn and ask again.",
        )
        self.locations = tuple(locations)


class UntrustedError(BadInputError):
    """Only a project file or a conversation names this ``place``, not the user.

    The file or the conversation may come from another author.
    """

    code = "untrusted"
    remedy = "Run `lamella trust add`, or name the location yourself. Lamella sent nothing."
    # Set once the user was asked, or could not be asked, so that the question is not repeated.
    is_decided = False

    def __init__(self, message: str, *, hint: Hint, field: str, location: str) -> None:
        super().__init__(message, hint=hint)
        self.field, self.location = field, location


class InvalidOperationError(BadInputError):
    """Calls in an invalid order, such as a reply without a question."""

    code = "bad_call"
    remedy = "Call the methods in order: `ask` first, then one reply for each turn."


class WorkflowError(BadInputError):
    """A workflow is invalid, or a stage cannot be worked on, submitted or approved yet."""

    code = "bad_workflow"
    remedy = "Correct the file, field or stage that the message names."


class DocumentError(BadInputError):
    """A document cannot be written: its format, style or template is not known, or a converter failed."""

    code = "bad_document"
    remedy = "Name another file, style or template, as the message says."


class WriteDeniedError(BadInputError):
    """A file was not written: not permitted, changed meanwhile, or not a path that Lamella may write to."""

    code = "write_refused"
    remedy = "Read the file again or choose another path, then repeat the change. The file is unchanged."


class HistoryConflictError(BadInputError):
    """An imported conversation exists already, with a different history."""

    code = "diverged"
    remedy = "Import the archive first, or use another folder or store."


class UsageError(BadInputError):
    """The command line has unknown words or conflicting options."""

    code = "bad_usage"
    remedy = "See `lamella COMMAND --help`."


class SourceNotFoundError(BadInputError):
    """A file, folder or tag does not exist."""

    code = "source_missing"
    remedy = "Check the path, and whether `.lamellaignore` excludes it. The hint lists similar names."


class PathOutsideVaultError(BadInputError):
    """A path leaves the vault, directly or through a link."""

    code = "source_outside"
    remedy = "Use a path inside the vault."


class SourceUnreadableError(BadInputError):
    """A file exists but cannot be read as its type."""

    code = "source_unreadable"
    remedy = "Save the file as UTF-8, or detach it. The message says what is wrong."


class SourceTooLargeError(BadInputError):
    """A file is larger than Lamella's limit."""

    code = "source_too_large"
    remedy = "Attach a part of the file, or split it."


class AddressNotAllowedError(BadInputError):
    """Lamella does not fetch from this address: it is private, contains a password, or uses another protocol."""

    code = "source_refused"
    remedy = "Attach the text of the page, or allow the host with `private_addresses`."


class SourceUnreachableError(BadInputError):
    """An address does not answer, or answers with a failure; a retry later may work."""

    code = "source_unreachable"
    remedy = "Try again later, or attach the text of the page."


class ExtraNotInstalledError(BadInputError):
    """The package that reads this comes with an extra that is not installed."""

    code = "extra_missing"
    remedy = "Install the extra that the hint names."


class NotAvailableError(BadInputError):
    """A documented choice is not available here."""

    code = "not_available"
    remedy = "Use the alternative that the hint names."


class RequestRejectedError(BadInputError):
    """The provider rejects the request as it is; the request was not billed."""

    code = "provider_refused"
    remedy = "Change the part of the request that the provider's message names."


class AuthenticationError(RequestRejectedError):
    """The provider rejects the API key, or the key lacks permission."""

    code = "key_refused"
    remedy = "Check the API key and its permissions."


class ModelNotFoundError(RequestRejectedError):
    """The provider does not have the model, or not for this key."""

    code = "model_missing"
    remedy = "Check the name of the model in the provider's list."


class WrongEndpointError(RequestRejectedError):
    """The server at the address does not speak this provider's API."""

    code = "bad_address"
    remedy = "Check the address; most end in `/v1`."


class ContextOverflowError(RequestRejectedError):
    """The provider says that the request does not fit the model."""

    code = "context_overflow"
    remedy = "Set a smaller `window` or a larger `reserve`."


class SdkNotInstalledError(RequestRejectedError):
    """The package for this provider is not installed."""

    code = "sdk_missing"
    remedy = "Install the extra that the hint names."


class StoreError(LamellaError):
    """Conversations could not be read or written; acknowledged writes are safe."""

    code = "store_error"
    remedy = "Read the message; completed writes are safe."


class ConflictError(StoreError):
    """Another process wrote to the conversation first; nothing was written."""

    code = "conflict"
    remedy = "Load the conversation again (`chat.reload()`) and repeat the change."

    def __init__(self, *, conversation_key: str, expected: int, found: int) -> None:
        super().__init__(
            f"The conversation {conversation_key} has {found:,} events; {expected:,} were expected.",
            hint=lambda hints: f"Someone else wrote to it. {hints.write_conflict_hint()}",
        )
        self.expected, self.found = expected, found


class ReplyOnOtherBranchError(StoreError):
    """The conversation continued before this answer came.

    The answer is stored on its own branch, after its question. ``answer`` is its id.
    """

    code = "answer_aside"
    remedy = "Read the answer with `lamella chats show NAME --branch ID`, or continue there with `/switch`."

    def __init__(self, *, conversation_key: str, reply_id: str) -> None:
        name = conversation_key
        super().__init__(
            f"The conversation {name} went on before this answer came; the answer is kept on a branch of its "
            f"own, {reply_id}.",
            hint=lambda hints: (
                f"{hints.show_chat_hint(name, reply_id)} shows it; {hints.switch_branch_hint(name, reply_id)} goes on there."
            ),
        )
        self.reply_id = reply_id


class ConversationErasedError(StoreError):
    """The conversation was erased; only its tombstone is left."""

    code = "erased"
    remedy = "Start a new conversation; the name is free."


class StoreUnavailableError(StoreError):
    """The disk, file or server did not accept the data; nothing was lost, and a retry may work."""

    code = "store_unavailable"
    remedy = "Follow the hint, then try again. No data is lost."


class StoreCorruptedError(StoreError):
    """The stored data differs from the written data."""

    code = "store_damaged"
    remedy = "Run `lamella store verify`; `--repair` rebuilds derived data. Restore the rest from a backup."


class StoreVersionError(StoreError):
    """A newer version of Lamella wrote the store, or the store must be migrated first."""

    code = "store_version"
    remedy = "Use that version of Lamella, or another store."


class ProviderError(LamellaError):
    """The provider failed; the part of the answer that had arrived stays valid."""

    code = "provider_error"
    remedy = "Try again; the message contains the provider's words."


class InvalidReplyError(ProviderError):
    """The answer was cut off, or is malformed."""

    code = "reply_broken"
    remedy = "Ask again. If it persists, check proxies between you and the provider."


class RetryableProviderError(ProviderError):
    """A retry later may work. ``wait`` is the number of seconds that the provider asks for, or None."""

    code = "provider_retry"
    remedy = "Wait, then try again."

    def __init__(self, message: str, *, hint: Hint, wait: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.wait = wait


class RateLimitError(RetryableProviderError):
    """Too many requests or tokens in too short a time."""

    code = "rate_limited"
    remedy = "Wait as long as the hint says."


class ProviderOverloadedError(RetryableProviderError):
    """The provider is overloaded."""

    code = "overloaded"
    remedy = "Wait, then try again."


class ProviderTimeoutError(RetryableProviderError):
    """The provider sent nothing for too long."""

    code = "provider_timeout"
    remedy = "Try again, or allow more time for models that reason long."


class ProviderUnreachableError(RetryableProviderError):
    """There is no connection to the provider."""

    code = "unreachable"
    remedy = "Check the address and the network."


class IndexUnavailableError(LamellaError):
    """The index of a vault cannot be read or written; the vault is unchanged, and a retry may work."""

    code = "index_unavailable"
    remedy = "Try again, or set `index_folder` to a writable folder."


class ContextBudgetExceededError(LamellaError):
    """The request does not fit the window.

    ``protected`` names the parts that compaction may not remove, ``expanded`` the attached folders and tags.
    """

    code = "budget_exceeded"
    remedy = "Detach, drop or unpin an attachment, shorten the message, or choose a larger `window`."

    def __init__(
        self, *, needed: int, hard: int, limit: int, protected: Sequence[str], expanded: Sequence[str] = ()
    ) -> None:
        fewer = f"Attach fewer notes by their paths in place of {_join_some(expanded)}. " if expanded else ""
        super().__init__(
            f"The request needs {needed:,} tokens; at most {hard:,} of the {limit:,} that fit may be used.",
            hint=f"{fewer}Kept whatever happens: {_join_some(protected)}. Detach, drop or unpin one, shorten what is "
            "typed, or choose a larger window.",
        )
        self.needed, self.hard, self.limit = needed, hard, limit
        self.protected, self.expanded = tuple(protected), tuple(expanded)


def _join_some(names: Sequence[str], max_shown: int = 8) -> str:
    more = f" and {len(names) - max_shown:,} more" if len(names) > max_shown else ""
    return ", ".join(names[:max_shown]) + more


class InvariantViolatedError(LamellaError):
    """An envelope violates an invariant: a bug in Lamella, never a mistake of the caller."""

    code = "law_broken"
    remedy = "Report it with the transcript that shows it."

    def __init__(self, *, invariant: str, findings: Sequence[str]) -> None:
        super().__init__(
            f"The envelope breaks the law '{invariant}': {'; '.join(findings)}.",
            hint="This is a bug in Lamella. Please report it with the transcript that shows it.",
        )
        self.invariant, self.findings = invariant, tuple(findings)


def install_hint(extra: str) -> str:
    """Return the command that installs an extra.

    The command installs from a clone: the package is in no package index, so its name alone would not be found.
    """
    return f'In the folder of the clone, install it with: pip install ".[{extra}]"'


# Errors of the HTTP server, and of requests made while a turn of the conversation is running.


class NotAuthenticatedError(BadInputError):
    """The request has no access token, or an unknown one."""

    code = "token_missing"
    remedy = "Send a token as `Authorization: Bearer …`."


class PermissionDeniedError(BadInputError):
    """The token is valid, but lacks the permission for this."""

    code = "scope_missing"
    remedy = "Use a token with a wider scope."


class OriginNotAllowedError(BadInputError):
    """The origin of the request, or the host name it was sent to, is not allowed."""

    code = "origin_refused"
    remedy = "Add the origin or host to `origins` or `hosts` in the setting `serve`."


class NotFoundError(BadInputError):
    """No object has that name here, or it belongs to another owner."""

    code = "not_found"
    remedy = "List the conversations or messages and check the name."


class NameConflictError(BadInputError):
    """A conversation with that name exists already."""

    code = "name_taken"
    remedy = "Choose another name."


class RunInProgressError(BadInputError):
    """A turn of the conversation is running.

    ``question`` is the id of its question and ``since`` the time it started; both are None if unknown.
    """

    code = "busy"
    remedy = 'Wait, follow the turn, stop it, or send `"queue": true`.'

    def __init__(self, conversation_key: str, *, question: str | None, since: str | None) -> None:
        begun = f" since {since}" if since else ""
        named = f", question {question}" if question else ""
        super().__init__(
            f"A turn of {conversation_key} is under way{begun}{named}.",
            hint="Wait for its answer, follow it, stop it, or ask for this to be queued.",
        )
        self.conversation, self.question, self.since = conversation_key, question, since


class RequestTooLargeError(BadInputError):
    """The request has more bytes than the server reads."""

    code = "request_too_large"
    remedy = "Send less in one request."


class UnsupportedEncodingError(BadInputError):
    """The request does not have a supported form."""

    code = "request_refused"
    remedy = "Send the request uncompressed; the message names the problem."


class RequestTimeoutError(BadInputError):
    """The request did not arrive in time."""

    code = "request_slow"
    remedy = "Send the request again."


class TooManyRequestsError(BadInputError):
    """Too many requests in too short a time; ``wait`` is the number of seconds to wait."""

    code = "too_many_requests"
    remedy = "Wait as long as `Retry-After` says."

    def __init__(self, message: str, *, hint: Hint, wait: float) -> None:
        super().__init__(message, hint=hint)
        self.wait = wait


class ServerUnavailableError(BadInputError):
    """The server is shutting down, or has reached its limit of turns; ``wait`` is the number of seconds to wait."""

    code = "stopping"
    remedy = "Try again in a moment."

    def __init__(self, message: str, *, hint: Hint, wait: float = 5.0) -> None:
        super().__init__(message, hint=hint)
        self.wait = wait
