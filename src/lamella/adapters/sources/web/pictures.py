"""Pictures of the web: the bytes at an address, once they were looked at."""

from base64 import b64encode

from lamella.adapters.sources.cache.entry import CacheEntry
from lamella.adapters.sources.pictures.content import parse_image
from lamella.adapters.sources.web.fetching import Fetcher, check_status

_ACCEPT = {"Accept": "image/png,image/jpeg,image/webp,image/gif,*/*;q=0.1"}


def fetch_picture(fetcher: Fetcher, url: str) -> CacheEntry:
    """The picture at an address as base64, which is what the cache keeps; an error if no picture is there."""
    answer = fetcher.fetch(url, _ACCEPT)
    check_status(answer, url)
    parse_image(answer.body, media_type=None, name=url)
    return CacheEntry(key=url, text=b64encode(answer.body).decode())
