"""The bibliography: the sources of all stages, each once, with what any of them says of it."""

import re
from collections.abc import Iterable, Iterator, Mapping

from lamella.core.workflow.fields import SOURCES, list_sources, tell_value
from lamella.core.workflow.session import WorkflowSession

_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
# What people write where they do not know: anything else is better.
_WEAK = frozenset({"", "n.d.", "nd", "t.t.", "unknown", "anonymous", "?"})
_FIELDS = ("authors", "year", "title", "text", "url", "doi")


def build_bibliography(session: WorkflowSession) -> list[str]:
    """A line for each source of the stages that are done or worked on, sorted by its text."""
    stages = [one.stage for one in session.done] + ([session.current.id] if session.current else [])
    merged = _merge(_list_all(session, stages))
    return sorted((_write(source) for source in merged), key=str.casefold)


def _list_all(session: WorkflowSession, stages: Iterable[str]) -> Iterator[dict[str, str]]:
    for stage in stages:
        fields: Mapping[str, object] = session.data.get(stage, {})
        for name in SOURCES:
            for source in list_sources(fields.get(name)):
                yield {field: tell_value(source[field]) for field in _FIELDS if field in source}


def _merge(sources: Iterable[dict[str, str]]) -> Iterable[dict[str, str]]:
    """Those that are one source as one: it is the same by its DOI, its address, or who wrote what when."""
    merged: dict[int, tuple[set[str], dict[str, str]]] = {}
    known: dict[str, int] = {}
    for number, source in enumerate(sources):
        keys, told = set(_list_keys(source)), dict(source)
        # One that has a DOI and an address may show that two that were apart so far are one.
        for same in sorted({known[key] for key in keys if key in known}):
            others, before = merged.pop(same)
            keys |= others
            told |= {name: text for name, text in before.items() if not _is_better(told.get(name, ""), text)}
        merged[number] = keys, told
        known.update(dict.fromkeys(keys, number))
    return [told for _, told in merged.values()]


def _is_better(text: str, than: str) -> bool:
    if text.casefold() in _WEAK or than.casefold() in _WEAK:
        return text.casefold() not in _WEAK
    return len(text) > len(than)


def _list_keys(source: Mapping[str, str]) -> Iterator[str]:
    url = source.get("url", "")
    doi = _find_doi(source, "doi", "url")
    if doi is not None:
        yield f"doi {doi.casefold()}"
    # Two sources of which nobody knows where they are need not be one.
    known = url.casefold() not in _WEAK
    if known:
        yield f"url {clean_address(url)}"
    if not doi and not known:
        said = "|".join(f"{name} {source[name]}" for name in ("title", "authors", "year", "text") if source.get(name))
        yield f"said {said.casefold()}"


def _find_doi(source: Mapping[str, str], *names: str) -> str | None:
    """The DOI that stands in one of these fields, however it is written there."""
    texts = (source[name] for name in names if name in source)
    found = next(filter(None, map(_DOI.fullmatch, texts)), None)
    return None if found is None else found[1]


def clean_address(url: str) -> str:
    """An address as it is compared: without what tracks, without a place inside the page, without a last slash."""
    page, _, asked = url.strip().partition("#")[0].partition("?")
    kept = [one for one in asked.split("&") if one and not one.casefold().startswith("utm_")]
    scheme, mark, rest = page.partition("://")
    host, slash, path = rest.partition("/")
    # Only what comes before the path is the same in small and capital letters.
    cleaned = f"{scheme.casefold()}{mark}{host.casefold()}{slash}{path}".removesuffix("/") if mark else page
    return "?".join((cleaned, "&".join(kept))) if kept else cleaned


def _write(source: Mapping[str, str]) -> str:
    """A source as a line of the list, in the order of the usual styles."""
    year = f"({source['year']})" if source.get("year") else ""
    said = [source.get("authors"), year, source.get("title"), source.get("text")]
    doi = _find_doi(source, "doi")
    link = source.get("url") or (f"https://doi.org/{doi}" if doi else source.get("doi", ""))
    parts = [part.rstrip(".") for part in said if part and part not in (source.get("url"), link)]
    told = ". ".join(parts)
    return " ".join(part for part in (f"{told}." if told else "", link if link not in told else "") if part)
