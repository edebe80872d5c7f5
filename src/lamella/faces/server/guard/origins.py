"""Origins: by which name a request was sent here, and from which page.

A page of somebody else can have a browser send requests to this machine, under its own name (CSRF) or under one that it
makes lead here (DNS rebinding). So the name must be one that is expected, and a page must be of this server or allowed.
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from lamella.refusals import OriginRefusedError

_NAME = "Whoever runs the server lists its names as `hosts` in the setting `serve`."
_PAGE = "Whoever runs the server lists pages that may ask as `origins` in the setting `serve`."


def check_host(headers: Headers, hosts: Collection[str]) -> None:
    """Refuses a request that was sent to another name than those by which this server is called."""
    given = headers.getlist("host")
    name = _strip_port(given[0].lower()) if len(given) == 1 else ""
    if name not in hosts:
        raise OriginRefusedError("This server is not called by that name.", hint=_NAME)


def check_origin(headers: Headers, hosts: Collection[str], origins: Collection[str]) -> None:
    """Refuses a request of a page that is neither of this server nor allowed; programs send no origin."""
    origin = headers.get("origin")
    if origin is None:
        if headers.get("sec-fetch-site", "none") in ("cross-site", "same-site"):
            raise OriginRefusedError("A page of another origin asks.", hint=_PAGE)
        return
    try:
        own = (urlsplit(origin).netloc or "-").lower() == headers.get("host", "").lower()
    except ValueError:
        own = False
    if not own and origin.lower().rstrip("/") not in origins:
        raise OriginRefusedError("A page of another origin asks.", hint=_PAGE)


def _strip_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
