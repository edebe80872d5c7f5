"""``fetch_url`` and ``web_search``: pages of the public web, and a search engine that the user has named."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from lamella.adapters.sources.opening import open_sources
from lamella.adapters.sources.readers import OpenConversions
from lamella.adapters.tools.schema import Arguments, ToolParameter, make_tool
from lamella.adapters.tools.stretches import START, cut_stretch
from lamella.attach import Tool, describe_page
from lamella.core.artifacts.wanted import Wanted
from lamella.engine.sending.tools import NOTHING_FOUND
from lamella.errors import SettingError, SourceUnreadableError

if TYPE_CHECKING:
    from lamella.adapters.sources.web.fetching import Fetcher

_MOST, _USUAL = 20, 8
_SNIPPET = 500
_SECONDS = 120.0
_PATH = "/search"


def make_fetch_tool(conversions: OpenConversions) -> Tool:
    """Pages and videos as a tool, read as attached ones are: from public addresses, within bounds, and kept."""
    look = open_sources(None, conversions)

    def fetch(given: Arguments) -> str:
        url, start = str(given["url"]).strip(), given.get("start", 0)
        assert isinstance(start, int)
        wanted = describe_page(url).attachment()
        if not isinstance(wanted, Wanted):
            raise SourceUnreadableError(f"{url[:80]} is no page.", hint="Give the address of one.")
        found = look().read(wanted)
        if found.images:
            raise SourceUnreadableError(f"{url[:80]} is a picture.", hint="Ask the user to attach it.")
        named = url if found.title in ("", url) else f"{url}, {found.title}"
        return cut_stretch(found.text, start, title=" ".join(named.split()))

    return make_tool(
        "fetch_url",
        "Read a page of the public web, or what is said in a YouTube video, as text.",
        parameters=(ToolParameter("url", "Its address, with https:// or http://.", required=True), START),
        run=fetch,
        seconds=_SECONDS,
    )


def make_web_search_tool(search: Callable[[str], Sequence[tuple[str, str, str]]]) -> Tool:
    """A search engine as a tool; it gives title, address and a few words of each page."""

    def run(given: Arguments) -> str:
        query, limit = str(given["query"]), given.get("limit", _USUAL)
        assert isinstance(limit, int)
        if not query.strip():
            raise ValueError("query is blank")
        found = search(query)[:limit]
        if not found:
            return f"{NOTHING_FOUND} on the web for {query[:200]!r}."
        return "\n\n".join(
            f"[{number}] {title}\n{url}\n{words}".rstrip() for number, (title, url, words) in enumerate(found, start=1)
        )

    return make_tool(
        "web_search",
        "Search the web and get the titles, addresses and a few words of pages; fetch_url reads one of them.",
        parameters=(
            ToolParameter("query", "What to search for.", required=True),
            ToolParameter("limit", f"How many to give at most; {_USUAL} by default.", "integer", least=1, most=_MOST),
        ),
        run=run,
        seconds=_SECONDS,
    )


def search_searx(fetcher: "Fetcher", address: str, query: str) -> list[tuple[str, str, str]]:
    """What a server that speaks as SearXNG does finds for a query."""
    from lamella.adapters.sources.web.fetching import check_status  # only those who search need it

    url = f"{place_search(address)}?{urlencode({'q': query, 'format': 'json'})}"
    answer = fetcher.fetch(url, {"Accept": "application/json"})
    # What was searched for stands in the address, and is not repeated in errors.
    check_status(answer, place_search(address))
    return read_results(answer.body, address)


def place_search(address: str) -> str:
    """Where a search engine is asked, from its address as people give it."""
    parts = urlsplit(address.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise SettingError(
            f"web_search is {address[:80]!r}, and no address of a search engine.",
            hint="Give one as in https://search.example.org; it has to answer as SearXNG does, in JSON.",
        )
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(_PATH) else path + _PATH, netloc=parts.netloc.lower()).geturl()


def read_results(body: bytes, address: str) -> list[tuple[str, str, str]]:
    """Title, address and words of each page in an answer; what is not of that shape is left out."""
    try:
        found = json.loads(body)
        results = found["results"]
        if not isinstance(results, list):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SourceUnreadableError(
            f"{address} does not answer a search in JSON.",
            hint="A server of SearXNG has to have json among its formats (search.formats).",
        ) from error
    return [_read(one) for one in results if isinstance(one, dict) and str(one.get("url", "")).startswith("http")]


def _read(one: Mapping[str, object]) -> tuple[str, str, str]:
    title, url, words = (" ".join(str(one.get(name) or "").split()) for name in ("title", "url", "content"))
    return title[:_SNIPPET] or url[:_SNIPPET], url[:_SNIPPET], words[:_SNIPPET]
