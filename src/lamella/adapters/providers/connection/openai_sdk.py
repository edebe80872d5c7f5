"""OpenAI's own SDK, for both of its APIs: opened when the first message is sent, its exceptions turned into ours."""

from typing import TYPE_CHECKING

from lamella.adapters.providers.connection.address import check_connection
from lamella.adapters.providers.connection.bounds import bound_answer, bound_opening
from lamella.adapters.providers.connection.failures import (
    Refusal,
    Target,
    explain_broken,
    explain_no_connection,
    explain_refusal,
    explain_timeout,
    read_wait,
)
from lamella.adapters.providers.wire.fields import as_fields, status_at, text_at
from lamella.errors import LamellaError, SdkMissingError, tell_install

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ADDRESS = "https://api.openai.com/v1"
PATIENCE = 120.0


def open_client(*, key: str, address: str, patience: float) -> "AsyncOpenAI":
    """A client that tries nothing twice."""
    check_connection(provider="OpenAI's API", key=key, address=address)
    try:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient
    except ImportError as error:
        raise SdkMissingError("The package openai is not installed.", hint=tell_install("openai")) from error
    # No redirect is followed: the whole conversation would go where the server says.
    http = DefaultAsyncHttpxClient(event_hooks={"response": [bound_answer]}, follow_redirects=False)
    bounded = bound_opening(http)
    return AsyncOpenAI(api_key=key, base_url=address, timeout=patience, max_retries=0, http_client=bounded)


def explain(error: Exception, target: Target, *, begun: bool) -> LamellaError:
    """Whatever the SDK or its transport raised, as one of our errors; ``begun`` once an answer was arriving."""
    from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

    if isinstance(error, APIStatusError):
        return explain_refusal(_read(error, status=error.status_code, wait=read_wait(error.response.headers)), target)
    if isinstance(error, APITimeoutError):
        return explain_timeout(target)
    if isinstance(error, APIConnectionError) and not begun:
        return explain_no_connection(target, error)
    if isinstance(error, APIError) and not isinstance(error, APIConnectionError):
        return explain_refusal(_read(error, status=200, wait=None), target)
    return explain_broken(target, str(error.__cause__ or error) or type(error).__name__)


def _read(error: Exception, *, status: int, wait: float | None) -> Refusal:
    body = getattr(error, "body", None)
    fields = as_fields(body)
    code, kind = text_at(fields, "code"), text_at(fields, "type")
    told = status_at(fields, "code")
    if status < 300 and told is not None:
        status, code = told, ""
    words = text_at(fields, "message") or text_at(fields, "detail") or (body if isinstance(body, str) else "")
    return Refusal(status=status, kind=code or kind, words=words, wait=wait, spoken="message" in fields)
