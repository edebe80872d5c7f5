"""Transcripts: what is said in a video, from those that YouTube has of it, in the language that is wanted most."""

from collections.abc import Iterable, Sequence
from json import dumps
from typing import TYPE_CHECKING, Any, cast
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from requests import RequestException, Response
from youtube_transcript_api import (
    AgeRestricted,
    RequestBlocked,
    VideoUnavailable,
    VideoUnplayable,
    YouTubeRequestFailed,
    YouTubeTranscriptApi,
    YouTubeTranscriptApiException,
)

from lamella.adapters.sources.conversion.model import ConvertedText
from lamella.adapters.sources.conversion.plain import clean, clean_title
from lamella.adapters.sources.web.fetching import Fetcher, WebAnswer
from lamella.errors import BadInputError, SourceMissingError, SourceUnreachableError, SourceUnreadableError

if TYPE_CHECKING:
    from requests import Session
    from youtube_transcript_api import FetchedTranscriptSnippet, Transcript

_PASTE = "Copy the transcript from the page of the video, and attach it as the text."
# How much speech stands under one time.
_PARAGRAPH = 60.0
_STRANGE = (
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    RecursionError,
    ParseError,
    DefusedXmlException,
    RequestException,
)


def read_transcript(fetcher: Fetcher, video: str, *, url: str, languages: Sequence[str]) -> ConvertedText:
    """The transcript of a video as paragraphs with their times, and its title where that is known."""
    session = GuardedSession(fetcher)
    try:
        chosen = _choose(list(YouTubeTranscriptApi(http_client=cast("Session", session)).list(video)), languages)
        said = chosen.fetch() if chosen is not None else None
    except BadInputError:
        raise
    except YouTubeTranscriptApiException as error:
        raise _tell(error, url) from error
    except _STRANGE as error:
        raise SourceUnreadableError(
            f"What YouTube answered for {url} is not as it was ({type(error).__name__}).", hint=_PASTE
        ) from error
    if chosen is None or said is None or not len(said):
        raise SourceUnreadableError(f"{url} has no transcript.", hint=_PASTE)
    made = ", made by a machine" if chosen.is_generated else ""
    head = f"Transcript in {clean_title(chosen.language)}{made}."
    return ConvertedText(title=session.title, text="\n\n".join((head, *_join(said.snippets))))


class GuardedSession:
    """As much of a session as the library uses, over our own way to fetch: no address, size or time is beyond it."""

    def __init__(self, fetcher: Fetcher) -> None:
        self.headers: dict[str, str] = {}
        self.cookies = CookieJar()
        self.title = ""
        self._fetcher = fetcher

    def get(self, url: str) -> Response:
        return _respond(self._fetcher.fetch(url, self._headers()))

    def post(self, url: str, *, json: object) -> Response:
        headers = {**self._headers(), "Content-Type": "application/json"}
        response = _respond(self._fetcher.fetch(url, headers, content=dumps(json).encode()))
        self._find_title(response)
        return response

    def _headers(self) -> dict[str, str]:
        cookies = "; ".join(map("=".join, self.cookies.items()))
        return {**self.headers, **({"Cookie": cookies} if cookies else {})}

    def _find_title(self, response: Response) -> None:
        """The library gives no title, and the answer that it reads has one."""
        try:
            details: Any = response.json()["videoDetails"]
            self.title = clean_title(str(details["title"]))
        except (LookupError, TypeError, ValueError, RecursionError):
            self.title = ""


class CookieJar(dict[str, str]):
    """The one cookie that says yes to cookies."""

    def set(self, name: str, value: str, **_where: object) -> None:
        self[name] = value


def _respond(answer: WebAnswer) -> Response:
    response = Response()
    response.status_code = answer.status
    response.url = answer.url
    response.encoding = answer.split_type()[1] or "utf-8"
    response._content = answer.body  # the only way to make one that did not come from a socket
    return response


def _choose(found: "Sequence[Transcript]", languages: Iterable[str]) -> "Transcript | None":
    """The one in the first language that there is, rather written than made by a machine; else the first."""
    ranked = sorted(found, key=lambda one: one.is_generated)
    for language in languages:
        for alike in (str.__eq__, _is_dialect):
            chosen = next((one for one in ranked if alike(one.language_code.lower(), language.lower())), None)
            if chosen is not None:
                return chosen
    return next(iter(ranked), None)


def _is_dialect(code: str, language: str) -> bool:
    return code.partition("-")[0] == language.partition("-")[0]


def _join(snippets: "Sequence[FetchedTranscriptSnippet]") -> list[str]:
    paragraphs: list[tuple[float, list[str]]] = []
    for snippet in snippets:
        if not paragraphs or snippet.start - paragraphs[-1][0] >= _PARAGRAPH:
            paragraphs.append((snippet.start, []))
        paragraphs[-1][1].append(" ".join(clean(snippet.text).split()))
    return [f"[{_tell_time(start)}] {' '.join(filter(None, words))}" for start, words in paragraphs]


def _tell_time(seconds: float) -> str:
    minutes, second = divmod(max(0, int(seconds)), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def _tell(error: YouTubeTranscriptApiException, url: str) -> BadInputError:
    if isinstance(error, VideoUnavailable):
        return SourceMissingError(f"There is no video at {url}.", hint="Check the address.")
    if isinstance(error, RequestBlocked | YouTubeRequestFailed):
        return SourceUnreachableError(f"YouTube does not answer for {url} ({type(error).__name__}).", hint=_PASTE)
    if isinstance(error, AgeRestricted | VideoUnplayable):
        return SourceUnreadableError(f"{url} is not shown to everybody ({type(error).__name__}).", hint=_PASTE)
    return SourceUnreadableError(f"{url} has no transcript ({type(error).__name__}).", hint=_PASTE)
