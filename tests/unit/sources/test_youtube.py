"""Transcripts of videos, from answers in the form that YouTube gives them, served on loopback."""

import json
from collections.abc import Mapping, Sequence

import pytest
from tests.sites import reply, site

from lamella.errors import BadInputError, SourceNotFoundError, SourceUnreachableError, SourceUnreadableError
from lamella.sources.web import Fetcher, FetchLimits, WebResponse, parse_allowlist
from lamella.sources.youtube import RestrictedSession, fetch_video_transcript

VIDEO, URL = "b4yT1de5_-x", "https://youtu.be/b4yT1de5_-x"
_YOUTUBE = "https://www.youtube.com"
PAGE = b'<html><script>{"INNERTUBE_API_KEY":"key-1","other":1}</script></html>'
SPOKEN = (
    '<?xml version="1.0" encoding="utf-8" ?><transcript><text start="0.5" dur="2">Tides &amp;amp; bars,</text>'
    '<text start="3" dur="2">told\n&lt;i&gt;slowly&lt;/i&gt;.</text><text start="61.2" dur="2">A minute later.</text>'
    '<text start="3700" dur="1">An hour.</text></transcript>'
)


class Detour(Fetcher):
    """Fetches from a site on loopback what is asked of YouTube."""

    def __init__(self, url: str) -> None:
        limits = FetchLimits(max_bytes=1_000_000, max_seconds=5, idle_timeout=2)
        super().__init__(limits, allowlist=parse_allowlist(["127.0.0.1"]))
        self.site = url

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, content: bytes | None = None) -> WebResponse:
        return super().fetch(url.replace(_YOUTUBE, self.site), headers, content=content)


def track(language: str, name: str, *, generated: bool = False) -> dict[str, object]:
    made = {"kind": "asr"} if generated else {}
    url = f"{_YOUTUBE}/api/timedtext?v={VIDEO}&lang={language}{'&kind=asr' if generated else ''}&fmt=srv3"
    return {"baseUrl": url, "name": {"runs": [{"text": name}]}, "languageCode": language, **made}


def player(*tracks: Mapping[str, object], status: str = "OK", reason: str = "") -> bytes:
    captions = {"captions": {"playerCaptionsTracklistRenderer": {"captionTracks": list(tracks)}}} if tracks else {}
    return json.dumps(
        {
            "playabilityStatus": {"status": status, "reason": reason},
            "videoDetails": {"videoId": VIDEO, "title": "Tides\nof the bay"},
            **captions,
        }
    ).encode()


def answers(told: bytes, spoken: bytes = SPOKEN.encode(), page: bytes = PAGE) -> object:
    def answer(path: str, _headers: Mapping[str, str]) -> Sequence[bytes]:
        if path.startswith("/watch"):
            return reply(page)
        if path.startswith("/youtubei"):
            return reply(told, kind="application/json")
        return reply(spoken, kind="text/xml; charset=UTF-8")

    return answer


def read(told: bytes, *, languages: Sequence[str] = ("en",), **parts: bytes) -> tuple[str, str, list[str]]:
    with site(answers(told, **parts)) as here:  # type: ignore[arg-type]
        found = fetch_video_transcript(Detour(here.url), VIDEO, url=URL, languages=languages)
    return found.title, found.text, here.paths


def test_transcript_is_in_paragraphs_with_times() -> None:
    title, text, paths = read(player(track("en", "English")))
    assert title == "Tides of the bay"
    assert text == (
        "Transcript in English.\n\n[0:00] Tides & bars, told slowly.\n\n[1:01] A minute later.\n\n[1:01:40] An hour."
    )
    assert paths == [
        f"/watch?v={VIDEO}",
        "/youtubei/v1/player?key=key-1",
        f"/api/timedtext?v={VIDEO}&lang=en",
    ]


@pytest.mark.parametrize(
    ("languages", "chosen"),
    [
        (("de", "en"), "German, made by a machine"),
        (("en",), "British English"),
        (("en-US",), "British English"),
        (("fr",), "British English"),
        ((), "British English"),
        (("id", "en"), "Indonesian"),
    ],
)
def test_first_available_language_is_chosen_and_written_track_preferred(languages: Sequence[str], chosen: str) -> None:
    tracks = [
        track("en", "English", generated=True),
        track("de", "German", generated=True),
        track("en-GB", "British English"),
        track("id", "Indonesian"),
    ]
    if languages == ("en",):
        tracks = tracks[1:]
    _, text, _ = read(player(*tracks), languages=languages)
    assert text.startswith(f"Transcript in {chosen}.")


@pytest.mark.parametrize(
    ("told", "error", "why"),
    [
        (player(), SourceUnreadableError, "has no transcript"),
        (player(status="ERROR", reason="This video is unavailable"), SourceNotFoundError, "no video at"),
        (
            player(status="LOGIN_REQUIRED", reason="Sign in to confirm you\u2019re not a bot"),
            SourceUnreachableError,
            "does not answer",
        ),
        (player(status="UNPLAYABLE", reason="Private"), SourceUnreadableError, "not shown to everybody"),
        (b"[" * 200_000, SourceUnreadableError, "is not as it was"),
        (b"[1, 2]", SourceUnreadableError, "is not as it was"),
        (b'{"playabilityStatus": {}, "captions": 7}', SourceUnreadableError, "not as it was|no transcript"),
        (player({"baseUrl": 5}), SourceUnreadableError, "is not as it was"),
    ],
)
def test_video_without_transcript_says_why_with_hint(told: bytes, error: type[BadInputError], why: str) -> None:
    with pytest.raises(error, match=why) as caught:
        read(told)
    assert error is SourceNotFoundError or "Copy the transcript" in caught.value.hint


@pytest.mark.parametrize(
    "spoken", [b"", b"<transcript>", b'<!DOCTYPE x [<!ENTITY a "b">]><t>&a;</t>', b"<transcript/>"]
)
def test_invalid_transcript_is_reported(spoken: bytes) -> None:
    with pytest.raises(SourceUnreadableError, match=r"not as it was|no transcript"):
        read(player(track("en", "English")), spoken=spoken)


def test_track_on_private_network_is_refused() -> None:
    bad = {**track("en", "English"), "baseUrl": "http://169.254.169.254/latest"}
    with pytest.raises(BadInputError, match=r"169\.254\.169\.254"):
        read(player(bad))


def test_session_keeps_and_sends_consent_cookie() -> None:
    with site(lambda _path, _headers: reply(b"{}")) as here:
        session = RestrictedSession(Detour(here.url))
        session.cookies.set("CONSENT", "YES+1", domain=".youtube.com")
        assert session.get(f"{_YOUTUBE}/x").status_code == 200
        session.post(f"{_YOUTUBE}/y", json={})
    assert [headers["cookie"] for _, headers in here.asked] == ["CONSENT=YES+1"] * 2
    assert session.title == ""
