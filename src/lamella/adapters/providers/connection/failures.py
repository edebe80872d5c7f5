"""Failures: what a provider or the way to it said, as one of our errors. SDKs' exceptions are told apart elsewhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from lamella.errors import (
    AddressError,
    ContextOverflowError,
    KeyRefusedError,
    LamellaError,
    ModelMissingError,
    OverloadedError,
    ProviderError,
    ProviderRefusedError,
    ProviderTimeoutError,
    RateLimitedError,
    ReplyBrokenError,
    UnreachableError,
)

_LONGEST_QUOTE = 500
# Of a page, what it shows comes after all of its style. More than this is not looked through.
_LONGEST_PAGE = 256 * 1_024
_PAGE = re.compile(r"\s*<(!doctype|html|head|body)\b", re.IGNORECASE)
# No pattern here looks further than to the next mark, so that none takes longer than reading the page does.
_TAG = re.compile(r"<[^<>]*>")
_UNSEEN = tuple(re.compile(rf"<(/?){name}\b[^<>]*>", re.IGNORECASE) for name in ("style", "script", "title"))
_OVERFLOWS = (
    "prompt is too long",
    "exceed context limit",
    "context_length_exceeded",
    "maximum context length",
    "exceed_context_size",
    "exceeds the available context size",
    "exceeds the maximum number of tokens",
    "context window",
    "request_too_large",
)
_BILLING = ("insufficient_quota", "billing_error")
_BAD_KEYS = ("api_key_invalid", "invalid_api_key", "api key not valid")
# Errors inside a stream come after the status 200 and are told by their kind alone.
_STATUS_OF_KIND = {
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "model_not_found": 404,
    "INVALID_ARGUMENT": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom a request was for; ``window`` where the one who answers said how much it takes."""

    provider: str
    model: str
    address: str
    patience: float
    window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer that is an error: its status, the kind the provider names, its words, when to come back.

    ``spoken`` says whether the body was an error of the provider's API rather than anybody's page.
    """

    status: int
    kind: str = ""
    words: str = ""
    wait: float | None = None
    spoken: bool = True


def explain_refusal(refusal: Refusal, target: Target) -> LamellaError:
    """The error for an answer that is one."""
    status = _STATUS_OF_KIND.get(refusal.kind, 500) if refusal.status < 300 else refusal.status
    answered = "with an error" if refusal.status < 300 else str(status)
    said = f"{target.provider} answered {answered}" + (f": {_quote(refusal.words)}" if refusal.words else ".")
    told = f"{refusal.kind} {refusal.words}".lower()
    if status in (401, 403) or any(sign in told for sign in _BAD_KEYS):
        return KeyRefusedError(said, hint=f"Check the key for {target.provider}, and that it may use {target.model}.")
    if any(sign in told for sign in _BILLING) or status == 402:
        return ProviderRefusedError(
            said, hint=f"The account with {target.provider} has no credit left. Waiting will not help."
        )
    if status == 413 or (status < 500 and any(sign in told for sign in _OVERFLOWS)):
        smaller = f"a window of {target.window} or less" if target.window else "a smaller window"
        return ContextOverflowError(
            said, hint=f"Attach less, or only some lines of a file; {smaller} makes Lamella shrink earlier."
        )
    if status in (404, 405) or status < 400:
        return _missing(refusal, target, said)
    return _later(status, refusal, target, said=said)


def _missing(refusal: Refusal, target: Target, said: str) -> LamellaError:
    if 300 <= refusal.status < 400:
        return AddressError(
            said,
            hint=f"{target.address} leads elsewhere, and no redirect is followed: nothing goes where a server says. "
            "Name the address that it leads to.",
        )
    names_model = refusal.kind == "model_not_found" or target.model.lower() in refusal.words.lower()
    if refusal.spoken and names_model:
        return ModelMissingError(
            said, hint=f"{target.provider} has no model {target.model} for this key. Check its name."
        )
    return AddressError(said, hint=f"{target.address} does not speak this API. Check the address.")


def _later(status: int, refusal: Refusal, target: Target, *, said: str) -> LamellaError:
    wait = refusal.wait
    when = f"Try again in {_say_number(wait)} seconds." if wait is not None else "Try again later."
    match status:
        case 429:
            return RateLimitedError(said, hint=when, wait=wait)
        case 503 | 529:
            return OverloadedError(said, hint=when, wait=wait)
        case 408 | 504:
            return ProviderTimeoutError(said, hint=when, wait=wait)
    if status < 500:
        return ProviderRefusedError(
            said, hint=f"{target.provider} does not take this request. Mend what its words name."
        )
    return ProviderError(said, hint="This is the provider's doing. Try again, or ask another model.")


def explain_timeout(target: Target) -> LamellaError:
    """The error for silence."""
    return ProviderTimeoutError(
        f"{target.provider} sent nothing for {target.patience:g} seconds.",
        hint="Try again, or raise the patience for models that think long.",
    )


def explain_no_connection(target: Target, cause: BaseException) -> LamellaError:
    """The error for a connection that could not be had."""
    reason = str(cause.__cause__ or cause) or type(cause).__name__
    return UnreachableError(
        f"{target.provider} cannot be reached at {target.address}: {_quote(reason)}",
        hint="Check the address, the port and the network.",
    )


def explain_broken(target: Target, reason: str) -> LamellaError:
    """The error for an answer that stops short or makes no sense."""
    return ReplyBrokenError(
        f"{target.provider} broke off its answer: {_quote(reason)}",
        hint="Ask again. If it persists, something between here and the provider changes answers.",
    )


def explain_page(target: Target, body: bytes) -> LamellaError:
    """The error for a page of somebody else where an answer was expected."""
    said = f"something that is no answer: {_quote(body.decode(errors='replace'))}" if body.strip() else "nothing."
    return AddressError(
        f"{target.provider} answered with {said}", hint=f"{target.address} does not speak this API. Check the address."
    )


def explain_unstreamed(target: Target, body: bytes) -> LamellaError:
    """The error for an answer in one piece of which nobody knows what it says."""
    return ReplyBrokenError(
        f"{target.provider} sent no stream, and what it sent is no answer: {_quote(body.decode(errors='replace'))}",
        hint=f"Check that what answers at {target.address} speaks this API, and that it can stream.",
    )


def read_wait(headers: Mapping[str, str]) -> float | None:
    """How many seconds a provider asks to wait, from its headers; a date counts from the answer's own date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    after = headers.get("retry-after")
    seconds = _number(after)
    return seconds if seconds is not None or after is None else _until(after, headers.get("date"))


def _until(moment: str, date: str | None) -> float | None:
    try:
        start = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return max((parsedate_to_datetime(moment) - start).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def _number(text: str | None) -> float | None:
    try:
        found = float(text) if text else None
    except ValueError:
        return None
    return found if found is not None and 0 <= found < float("inf") else None


def _say_number(number: float) -> str:
    return f"{number:,.3f}".rstrip("0").rstrip(".")


def _quote(words: str) -> str:
    """Somebody's words, on one line and not too many of them; of a web page, what it shows."""
    words = words[:_LONGEST_PAGE]
    if _PAGE.match(words):
        words = _TAG.sub(" ", _show(words))
    text = " ".join(words.split())
    text = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _show(page: str) -> str:
    """A page without what stands between tags that show nothing; where such a tag is never closed, it is just a tag."""
    for unseen in _UNSEEN:
        texts, slashes = (parts := unseen.split(page))[::2], parts[1::2]
        closed = len(slashes) - slashes[::-1].index("/") if "/" in slashes else 0
        seen = (slash == "/" or place >= closed for place, slash in enumerate(slashes))
        page = " ".join([texts[0], *(text for text, shown in zip(texts[1:], seen, strict=True) if shown)])
    return page
