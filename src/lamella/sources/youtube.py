"""Read the transcript of a YouTube video, in the most preferred language that is available."""

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

from lamella.errors import BadInputError, SourceNotFoundError, SourceUnreachableError, SourceUnreadableError
from lamella.sources.converters import ConvertedText, clean_text, clean_title
from lamella.sources.web import Fetcher, WebResponse

if TYPE_CHECKING:
    from requests import Session
    from youtube_transcript_api import FetchedTranscriptSnippet, Transcript

_PASTE_TRANSCRIPT_HINT = "Copy the transcript from the page of the video, and attach it as the text."
# How many seconds of speech form one paragraph under one time.
_PARAGRAPH_SECONDS = 60.0
_PARSE_ERRORS = (
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


def fetch_video_transcript(fetcher: Fetcher, video: str, *, url: str, languages: Sequence[str]) -> ConvertedText:
    """Return the transcript of a video as paragraphs with times, and its title if known."""
    session = RestrictedSession(fetcher)
    try:
        chosen = _choose_transcript(
            list(YouTubeTranscriptApi(http_client=cast("Session", session)).list(video)), languages
        )
        transcript = chosen.fetch() if chosen is not None else None
    except BadInputError:
        raise
    except YouTubeTranscriptApiException as error:
        raise _to_lamella_error(error, url) from error
    except _PARSE_ERRORS as error:
        raise SourceUnreadableError(
            f"What YouTube answered for {url} is not as it was ({type(error).__name__}).", hint=_PASTE_TRANSCRIPT_HINT
        ) from error
    if chosen is None or transcript is None or not len(transcript):
        raise SourceUnreadableError(f"{url} has no transcript.", hint=_PASTE_TRANSCRIPT_HINT)
    made = ", made by a machine" if chosen.is_generated else ""
    head = f"Transcript in {clean_title(chosen.language)}{made}."
    return ConvertedText(title=session.title, text="\n\n".join((head, *_join_paragraphs(transcript.snippets))))


class RestrictedSession:
    """The part of a ``requests`` session that the transcript library uses, on top of Lamella's fetcher.

    All its requests are subject to the fetcher's checks of addresses, sizes and times.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        self.headers: dict[str, str] = {}
        self.cookies = CookieJar()
        self.title = ""
        self._fetcher = fetcher

    def get(self, url: str) -> Response:
        return _to_requests_response(self._fetcher.fetch(url, self._headers()))

    def post(self, url: str, *, json: object) -> Response:
        headers = {**self._headers(), "Content-Type": "application/json"}
        response = _to_requests_response(self._fetcher.fetch(url, headers, content=dumps(json).encode()))
        self._take_title_from_response(response)
        return response

    def _headers(self) -> dict[str, str]:
        cookies = "; ".join(map("=".join, self.cookies.items()))
        return {**self.headers, **({"Cookie": cookies} if cookies else {})}

    def _take_title_from_response(self, response: Response) -> None:
        """Take the title from the response, because the library reads the same response without returning it."""
        try:
            details: Any = response.json()["videoDetails"]
            self.title = clean_title(str(details["title"]))
        except (LookupError, TypeError, ValueError, RecursionError):
            self.title = ""


class CookieJar(dict[str, str]):
    """Holds the one cookie that the library sets: the consent to cookies."""

    def set(self, name: str, value: str, **_where: object) -> None:
        self[name] = value


def _to_requests_response(answer: WebResponse) -> Response:
    response = Response()
    response.status_code = answer.status
    response.url = answer.url
    response.encoding = answer.parse_content_type()[1] or "utf-8"
    response._content = answer.body  # the only way to build a response that did not come from a socket
    return response


def _choose_transcript(transcripts: "Sequence[Transcript]", languages: Iterable[str]) -> "Transcript | None":
    """Return the transcript in the first available language, or else the first transcript; None if there is none.

    Manual transcripts are preferred to generated ones. The exact language code is preferred to a variant such as
    ``en-GB``.
    """
    ranked = sorted(transcripts, key=lambda one: one.is_generated)
    for language in languages:
        for alike in (str.__eq__, _has_same_base_language):
            chosen = next((one for one in ranked if alike(one.language_code.lower(), language.lower())), None)
            if chosen is not None:
                return chosen
    return next(iter(ranked), None)


def _has_same_base_language(code: str, language: str) -> bool:
    return code.partition("-")[0] == language.partition("-")[0]


def _join_paragraphs(snippets: "Sequence[FetchedTranscriptSnippet]") -> list[str]:
    paragraphs: list[tuple[float, list[str]]] = []
    for snippet in snippets:
        if not paragraphs or snippet.start - paragraphs[-1][0] >= _PARAGRAPH_SECONDS:
            paragraphs.append((snippet.start, []))
        paragraphs[-1][1].append(" ".join(clean_text(snippet.text).split()))
    return [f"[{_format_offset(start)}] {' '.join(filter(None, words))}" for start, words in paragraphs]


def _format_offset(seconds: float) -> str:
    minutes, second = divmod(max(0, int(seconds)), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def _to_lamella_error(error: YouTubeTranscriptApiException, url: str) -> BadInputError:
    if isinstance(error, VideoUnavailable):
        return SourceNotFoundError(f"There is no video at {url}.", hint="Check the address.")
    if isinstance(error, RequestBlocked | YouTubeRequestFailed):
        return SourceUnreachableError(
            f"YouTube does not answer for {url} ({type(error).__name__}).", hint=_PASTE_TRANSCRIPT_HINT
        )
    if isinstance(error, AgeRestricted | VideoUnplayable):
        return SourceUnreadableError(
            f"{url} is not shown to everybody ({type(error).__name__}).", hint=_PASTE_TRANSCRIPT_HINT
        )
    return SourceUnreadableError(f"{url} has no transcript ({type(error).__name__}).", hint=_PASTE_TRANSCRIPT_HINT)
