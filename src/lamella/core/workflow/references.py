"""References as data: CSL-JSON items with stable keys, and the citations of a text.

``to_reference`` checks an item or makes one from typed fields. ``ReferenceList`` adds items so that each source is there
once, under one key: sources are the same if they share a DOI, a URL without tracking parameters, or title and year.
``find_citations`` returns the keys that a text cites in the syntax of Pandoc: ``[@doe2020, p. 3]`` or ``@doe2020``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from unicodedata import category, normalize

from msgspec import Struct

from lamella.core.text.content import iter_lines_with_code_flag, truncate_words
from lamella.errors import WorkflowError

CslItem = Mapping[str, object]

# Maximum number of references of a conversation, of characters in one item's text, and of authors.
MAX_REFERENCES = 2_000
_MAX_TEXT_CHARS = 5_000
_MAX_NAMES = 500
_DEFAULT_TYPE = "document"
# The field with the other keys of a reference, with spaces between them. Pandoc resolves citations by it as well.
OTHER_KEYS_FIELD = "other-ids"
# The types of CSL 1.0.2.
# fmt: off
REFERENCE_TYPES = frozenset((
    "article", "article-journal", "article-magazine", "article-newspaper", "bill", "book", "broadcast", "chapter",
    "classic", "collection", "dataset", "document", "entry", "entry-dictionary", "entry-encyclopedia", "event",
    "figure", "graphic", "hearing", "interview", "legal_case", "legislation", "manuscript", "map",
    "motion_picture", "musical_score", "pamphlet", "paper-conference", "patent", "performance", "periodical",
    "personal_communication", "post", "post-weblog", "regulation", "report", "review", "review-book", "software",
    "song", "speech", "standard", "thesis", "treaty", "webpage",
))
# fmt: on
_NAME_FIELDS = frozenset(("author", "editor", "translator", "collection-editor", "container-author", "director"))
_DATE_FIELDS = frozenset(("issued", "accessed", "original-date", "submitted", "event-date"))
# Usual names of fields, and the CSL field that each one means.
_FIELD_ALIASES = {
    "authors": "author",
    "editors": "editor",
    "year": "issued",
    "date": "issued",
    "journal": "container-title",
    "container": "container-title",
    "booktitle": "container-title",
    "pages": "page",
    "number": "issue",
    "doi": "DOI",
    "url": "URL",
    "isbn": "ISBN",
    "issn": "ISSN",
    "place": "publisher-place",
    "address": "publisher-place",
}
KEY_PATTERN = re.compile(r"[^\W_][\w:.#$%&+?<>~/-]{0,79}")
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
# Values that mean "unknown". Any other value is preferred when two entries are merged.
_UNKNOWN_VALUES = frozenset({"", "n.d.", "nd", "t.t.", "unknown", "anonymous", "?"})
_YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
# A reference as text in the usual order: authors (year). Title. The rest.
_TYPED_REFERENCE = re.compile(
    r"(?P<authors>[^()]{2,300}?)\s*\((?P<year>(?:1[5-9]|20)\d\d)[a-z]?(?:,[^()]*)?\)[.:,]?\s*"
    r"(?P<title>[^.]{3,400})\.?(?P<rest>.*)",
    re.DOTALL,
)
_REFERENCE_HINT = 'Give fields of CSL-JSON, such as {"title": "…", "author": [{"family": "…"}], "issued": 2020}.'


# Items.


def parse_doi(text: object) -> str | None:
    """Return the DOI in a text that is a DOI in any usual notation, or None."""
    found = _DOI.fullmatch(text.strip()) if isinstance(text, str) else None
    return None if found is None else found[1].rstrip(".,;")


def normalize_url(url: str) -> str:
    """Normalise a URL for comparison: no tracking parameters, no fragment, no final slash."""
    page, _, asked = url.strip().partition("#")[0].partition("?")
    kept = [one for one in asked.split("&") if one and not one.casefold().startswith(("utm_", "fbclid=", "gclid="))]
    scheme, mark, rest = page.partition("://")
    host, slash, path = rest.partition("/")
    # Scheme and host are not case-sensitive; the path is.
    cleaned = f"{scheme.casefold()}{mark}{host.casefold()}{slash}{path}".removesuffix("/") if mark else page
    return "?".join((cleaned, "&".join(kept))) if kept else cleaned


def to_reference(given: object) -> dict[str, object]:
    """Return a CSL-JSON item, checked, from an item, from fields under their usual names, or from a typed line.

    Its ``id`` is missing if none was given. Raises ``WorkflowError`` with the name of the field that is wrong.
    """
    if isinstance(given, str):
        return _parse_typed_reference(" ".join(given.split()))
    if not isinstance(given, Mapping):
        raise WorkflowError(f"A reference is {type(given).__name__}, not an object.", hint=_REFERENCE_HINT)
    item: dict[str, object] = {}
    for name, value in given.items():
        if not isinstance(name, str) or name == OTHER_KEYS_FIELD or value is None or value in ("", [], {}):
            continue
        field = _FIELD_ALIASES.get(name.casefold(), name)
        item[field] = _to_field(field, value)
    text = item.pop("text", None)
    if isinstance(text, str):
        item = {**_parse_typed_reference(text), **item}
    item.setdefault("type", "webpage" if item.get("URL") and not item.get("container-title") else _DEFAULT_TYPE)
    doi = parse_doi(item.get("DOI")) or parse_doi(item.get("URL"))
    if doi:
        item["DOI"] = doi
        if parse_doi(item.get("URL")):
            item.pop("URL", None)
    if not any(item.get(name) for name in ("title", "author", "URL", "DOI", "container-title")):
        raise WorkflowError("A reference has no title, author, URL or DOI.", hint=_REFERENCE_HINT)
    return item


def _to_field(field: str, value: object) -> object:
    if field == "id":
        return check_reference_key(str(value))
    if field == "type":
        if not isinstance(value, str) or value not in REFERENCE_TYPES:
            raise WorkflowError(
                f"A reference has the type {value!r}.",
                hint="Use a type of CSL, such as article-journal, book, chapter, paper-conference, thesis or webpage.",
            )
        return value
    if field in _NAME_FIELDS:
        return _to_names(field, value)
    if field in _DATE_FIELDS:
        return _to_date(field, value)
    if isinstance(value, str):
        return truncate_words(" ".join(value.split()), _MAX_TEXT_CHARS)
    if isinstance(value, bool | int | float):
        return str(value)
    # Other structures of CSL-JSON, such as ``custom``, are kept as they are.
    return value


def _to_names(field: str, value: object) -> list[dict[str, str]]:
    """Return names from CSL names, a list of texts, or one text with a semicolon or "and" between the names."""
    given: Sequence[object]
    if isinstance(value, str):
        given = [one for one in re.split(r"\s*;\s*|\s+(?:and|dan|und|&)\s+", value) if one.strip()]
    elif isinstance(value, Mapping):
        given = [value]
    elif isinstance(value, Sequence):
        given = value
    else:
        raise WorkflowError(f"The {field} of a reference is {value!r}.", hint=_REFERENCE_HINT)
    if len(given) > _MAX_NAMES:
        raise WorkflowError(f"A reference has {len(given):,} names; at most {_MAX_NAMES} fit.", hint=_REFERENCE_HINT)
    return [_to_name(field, one) for one in given]


def _to_name(field: str, value: object) -> dict[str, str]:
    if isinstance(value, Mapping):
        name = {str(part): " ".join(text.split()) for part, text in value.items() if isinstance(text, str) and text}
        if not name.get("family") and not name.get("literal"):
            name = {"literal": name["given"]} if name.get("given") else {}
        if name:
            return name
    elif isinstance(value, str) and value.strip():
        return parse_name(value)
    raise WorkflowError(f"The {field} of a reference has the name {value!r}.", hint=_REFERENCE_HINT)


def parse_name(text: str) -> dict[str, str]:
    """Parse ``Sari, Rina`` or ``Rina Sari``; a name in braces, or of one word, is not divided."""
    text = " ".join(text.split()).strip(" ,;")
    if text.startswith("{") and text.endswith("}"):
        return {"literal": text[1:-1]}
    family, comma, given = text.partition(",")
    if comma:
        return {"family": family.strip(), "given": given.strip()} if given.strip() else {"family": family.strip()}
    words = text.split()
    return {"family": words[-1], "given": " ".join(words[:-1])} if len(words) > 1 else {"literal": text}


def _to_date(field: str, value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        parts = value.get("date-parts")
        if parts is None:
            return {str(name): one for name, one in value.items() if isinstance(one, str | int)}
        if isinstance(parts, Sequence) and not isinstance(parts, str) and all(map(_is_date, parts)) and parts:
            return {**value, "date-parts": [[int(one) for one in part] for part in parts]}
        raise WorkflowError(f"The {field} date of a reference is {parts!r}.", hint=_REFERENCE_HINT)
    text = str(value).strip()
    found = re.fullmatch(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?(?:T.*)?", text)
    return {"date-parts": [[int(one) for one in found.groups() if one]]} if found else {"literal": text}


def _is_date(part: object) -> bool:
    return (
        isinstance(part, Sequence)
        and not isinstance(part, str)
        and 1 <= len(part) <= 3
        and all(str(one).lstrip("-").isdecimal() for one in part)
    )


def _parse_typed_reference(text: str) -> dict[str, object]:
    """Return an item from a typed line: an address, a DOI, "Authors (year). Title. Rest", or a title."""
    if not text.strip():
        raise WorkflowError("A reference is blank.", hint=_REFERENCE_HINT)
    doi = parse_doi(text)
    if doi is not None:
        return {"type": "article-journal", "DOI": doi}
    if _ADDRESS.fullmatch(text):
        return {"type": "webpage", "URL": text}
    address = _ADDRESS.search(text)
    link = None if address is None else address.group().rstrip(".,;)")
    found = _TYPED_REFERENCE.fullmatch(text)
    item: dict[str, object]
    if found is None:
        item = {"type": _DEFAULT_TYPE, "title": truncate_words(text.rstrip("."), _MAX_TEXT_CHARS)}
    else:
        rest = " ".join(found["rest"].replace(link or "\0", "").replace("doi:", "").split()).strip(" .")
        item = {
            "type": "article-journal" if rest else _DEFAULT_TYPE,
            "author": _split_typed_authors(found["authors"]),
            "issued": {"date-parts": [[int(found["year"])]]},
            "title": found["title"].strip(),
        }
        if rest:
            item["container-title"] = truncate_words(rest, _MAX_TEXT_CHARS)
    if link is not None and link not in str(item.get("title", "")):
        found_doi = parse_doi(link)
        item |= {"DOI": found_doi} if found_doi else {"URL": link}
    return item


def _split_typed_authors(text: str) -> list[dict[str, str]]:
    """Split authors as styles print them: ``Sari, R., & Budi, A.`` or ``Sari and Budi``."""
    text = text.replace("et al.", "").strip(" ,")
    names = re.split(r"\s*;\s*|,?\s+(?:&|and|dan)\s+", text)
    split: list[str] = []
    for one in names:
        # "Sari, R., Budi, A." is a list of pairs.
        parts = [part.strip() for part in one.split(",") if part.strip()]
        initials = [len(part.replace(".", "").replace(" ", "").replace("-", "")) <= 3 for part in parts[1::2]]
        if len(parts) > 2 and all(initials):
            split += [", ".join(parts[at : at + 2]) for at in range(0, len(parts), 2)]
        elif parts:
            split.append(", ".join(parts))
    return [parse_name(one) for one in split] or [{"literal": text or "?"}]


def check_reference_key(key: str) -> str:
    """Return a citation key that Pandoc can read after ``@``; raises ``WorkflowError`` for any other."""
    if not KEY_PATTERN.fullmatch(key) or key[-1] in ":.#$%&+?<>~/-" or key.startswith(("fig:", "tbl:", "sec:")):
        raise WorkflowError(
            f"The key of a reference is {key!r}.",
            hint="Use letters, digits, _ and -, such as doe2020. Keys of figures, tables and sections are others.",
        )
    return key


def reference_year(item: CslItem) -> str:
    """Return the year of a reference, or ""."""
    issued = item.get("issued")
    if not isinstance(issued, Mapping):
        return ""
    parts = issued.get("date-parts")
    if isinstance(parts, Sequence) and parts and isinstance(parts[0], Sequence) and parts[0]:
        return str(parts[0][0])
    text = str(issued.get("literal") or issued.get("raw") or "")
    found = _YEAR.search(text)
    return found[1] if found else text


def author_names(item: CslItem, *, field: str = "author") -> list[str]:
    """Return the family names, or names of organisations, of a reference."""
    names = item.get(field)
    return [
        str(name.get("family") or name.get("literal"))
        for name in (names if isinstance(names, Sequence) and not isinstance(names, str) else ())
        if isinstance(name, Mapping) and (name.get("family") or name.get("literal"))
    ]


def list_missing_details(item: CslItem) -> list[str]:
    """Return the details that a bibliography needs and this reference lacks: author, year, title."""
    missing = [] if author_names(item) or author_names(item, field="editor") else ["author"]
    missing += [] if reference_year(item).casefold() not in _UNKNOWN_VALUES else ["year"]
    return missing + ([] if str(item.get("title") or "").strip() else ["title"])


def format_reference(item: CslItem) -> str:
    """Format a reference on one line, in the order of common citation styles, with a complete address."""
    year, title = reference_year(item), str(item.get("title") or "")
    details = [
        "; ".join(_full_names(item)),
        f"({year})" if year else "",
        title,
        str(item.get("container-title") or item.get("publisher") or ""),
    ]
    entry = ". ".join(part.rstrip(".") for part in details if part)
    doi = str(item.get("DOI") or "")
    link = str(item.get("URL") or "") or (f"https://doi.org/{doi}" if parse_doi(doi) else doi)
    return " ".join(part for part in (f"{entry}." if entry else "", link if link not in entry else "") if part)


def _full_names(item: CslItem) -> list[str]:
    names = item.get("author")
    if not isinstance(names, Sequence) or isinstance(names, str):
        return []
    return [
        str(name.get("literal") or ", ".join(str(name[part]) for part in ("family", "given") if name.get(part)))
        for name in names
        if isinstance(name, Mapping)
    ]


# Lists without duplicates.


class ReferenceList:
    """References by key, in the order they came; each source is there once."""

    def __init__(self, items: Mapping[str, CslItem] | None = None) -> None:
        self._items: dict[str, CslItem] = {} if items is None else dict(items)
        self._by_any_key = index_references(self._items.values())

    @property
    def items(self) -> Mapping[str, CslItem]:
        """Return the references by key."""
        return self._items

    def add(self, item: CslItem) -> tuple[str, bool]:
        """Add a reference; return its key, and whether it is new and no duplicate of one that is there already.

        A duplicate adds the details that the known reference lacks. A key that another source has gets a letter. If the
        reference shows that two known ones are the same source, the key of the second stays as another key of the first.
        """
        same = [key for key, known in self._items.items() if is_same_source(known, item)]
        if not same:
            key = self._make_key(item)
            self._items[key] = self._by_any_key[key] = {**item, "id": key}
            return key, True
        first, *others = same
        merged = {**self._items[first]}
        # An entry with a DOI and a URL can connect two earlier entries that had only one of them.
        found = [self._items.pop(key) for key in others]
        other_keys = [key for one in (merged, *found) for key in list_keys(one) if key != first]
        for other in [*found, item]:
            merged |= {
                name: value
                for name, value in other.items()
                if name not in ("id", OTHER_KEYS_FIELD) and _is_better(value, merged.get(name))
            }
        if other_keys:
            merged[OTHER_KEYS_FIELD] = " ".join(dict.fromkeys(other_keys))
        if len(merged) > 2 and merged.get("type") == _DEFAULT_TYPE and item.get("type"):
            merged["type"] = item["type"]
        self._items[first] = {**merged, "id": first}
        self._by_any_key |= dict.fromkeys(list_keys(self._items[first]), self._items[first])
        return first, False

    def has_key(self, key: object) -> bool:
        """Return whether a reference has this key, also as another key."""
        return key in self._by_any_key

    def find(self, key: str) -> CslItem:
        """Return the reference with this key, which may be one of its other keys."""
        return self._by_any_key[key]

    def _make_key(self, item: CslItem) -> str:
        given = item.get("id")
        key = str(given) if given else make_reference_key(item)
        if key not in self._by_any_key:
            return key
        return next(made for suffix in _iter_suffixes() if (made := f"{key}{suffix}") not in self._by_any_key)


def list_keys(item: CslItem) -> list[str]:
    """Return the key of a reference, and those of references that were merged into it."""
    others = item.get(OTHER_KEYS_FIELD)
    return [str(item["id"]), *(others.split() if isinstance(others, str) else ())]


def index_references(items: Iterable[CslItem]) -> dict[str, CslItem]:
    """Return references by each of their keys; a key of its own comes before another key of a reference."""
    listed = [item for item in items if item.get("id")]
    others = {key: item for item in listed for key in list_keys(item)}
    return {**others, **{str(item["id"]): item for item in listed}}


def make_reference_key(item: CslItem) -> str:
    """Return the key of a reference: family name of the first author, or first word of its title, and year."""
    names = author_names(item)
    if not names and not item.get("title") and item.get("DOI"):
        return "doi-" + "-".join(re.findall(r"[a-z0-9]+", str(item["DOI"]).casefold()))[:60].rstrip("-")
    words = re.findall(r"\w+", names[0] if names else str(item.get("title") or item.get("URL") or ""))
    words = [one for one in words if one.casefold() not in ("the", "a", "an", "https", "http", "www")] or ["source"]
    name = "".join(words) if names else words[0]
    plain = "".join(one for one in normalize("NFKD", name) if category(one)[0] in "LN").casefold()
    return f"{plain[:30] or 'source'}{reference_year(item) if reference_year(item).isdecimal() else ''}"


def _iter_suffixes() -> Iterator[str]:
    yield from "bcdefghijklmnopqrstuvwxyz"
    number = 2
    while True:
        yield f"-{number}"
        number += 1


def is_same_source(one: CslItem, other: CslItem) -> bool:
    """Return whether two references are the same source.

    They are if they have the same DOI, or the same URL without tracking parameters, or the same title and year, with the
    same authors where both have some. Two different DOIs are two sources.
    """
    dois = [str(item["DOI"]).casefold() for item in (one, other) if parse_doi(item.get("DOI"))]
    if len(dois) == 2:
        return dois[0] == dois[1]
    urls = [
        normalize_url(str(item["URL"]))
        for item in (one, other)
        if str(item.get("URL") or "").casefold() not in _UNKNOWN_VALUES
    ]
    if len(urls) == 2 and urls[0] == urls[1]:
        return True
    titles = [_comparable(item.get("title")) for item in (one, other)]
    if not titles[0] or titles[0] != titles[1] or reference_year(one) != reference_year(other):
        return False
    authors = [[name.casefold() for name in author_names(item)] for item in (one, other)]
    if all(authors):
        return authors[0] == authors[1]
    # Without a year and an author on one side, only equal entries without other addresses are the same.
    return bool(reference_year(one)) or (not any(authors) and len(urls) < 2)


def _comparable(title: object) -> str:
    return " ".join(re.findall(r"\w+", str(title or "").casefold()))


def _is_better(value: object, known: object) -> bool:
    """Return whether a value says more than the known one."""
    if known is None or known in ("", [], {}):
        return True
    if isinstance(value, str) and isinstance(known, str):
        if known.casefold() in _UNKNOWN_VALUES or value.casefold() in _UNKNOWN_VALUES:
            return value.casefold() not in _UNKNOWN_VALUES
        return len(value) > len(known)
    if isinstance(value, Mapping) and isinstance(known, Mapping):
        return "date-parts" in value and "date-parts" not in known
    if isinstance(value, Sequence) and isinstance(known, Sequence):
        return len(str(value)) > len(str(known))
    return False


# Citations in texts.

# As Pandoc reads them: a key begins with a letter, a digit or _, and ends with one; other characters are single.
_CITATION = re.compile(r"(?<![\w\\])@(?:\{(?P<braced>[^{}\s]+)\}|(?P<key>\w(?:[\w]|[:.#$%&+?<>~/-](?=\w))*))")
_INLINE_CODE = re.compile(r"(`+)(?:(?!\1).)+\1", re.DOTALL)
CROSS_REFERENCE_PREFIXES = ("fig:", "tbl:", "sec:")


def find_citations(text: str) -> list[str]:
    """Return the keys that a text cites, in order and each once; code and e-mail addresses are no citations."""
    return list(dict.fromkeys(key for key in _iter_keys(text) if not key.startswith(CROSS_REFERENCE_PREFIXES)))


def find_cross_references(text: str) -> list[str]:
    """Return the keys of figures, tables and sections that a text refers to, such as ``fig:sleep``, each once."""
    return list(dict.fromkeys(key for key in _iter_keys(text) if key.startswith(CROSS_REFERENCE_PREFIXES)))


def _iter_keys(text: str) -> Iterator[str]:
    if "@" not in text:
        return
    prose = "\n".join(line for line, is_code in iter_lines_with_code_flag(text) if not is_code)
    for found in _CITATION.finditer(_INLINE_CODE.sub(" ", prose)):
        yield found["braced"] or found["key"]


class AddedReferences(Struct, frozen=True, kw_only=True):
    """What adding references changes.

    Attributes:
        items: The items to store, new or with more details.
        keys: The key of each reference that was given, in order.
        merged: The keys of known items that are now other keys of one of ``items``.
    """

    items: tuple[CslItem, ...]
    keys: tuple[str, ...]
    merged: tuple[str, ...]


def add_references(known: Mapping[str, CslItem], given: Iterable[object]) -> AddedReferences:
    """Return what adding these references to known ones changes."""
    listed = ReferenceList(known)
    keys = tuple(listed.add(to_reference(one))[0] for one in given)
    if len(listed.items) > MAX_REFERENCES:
        raise WorkflowError(
            f"There would be {len(listed.items):,} references; at most {MAX_REFERENCES:,} fit.",
            hint="Add those that the work cites.",
        )
    stored = dict.fromkeys(str(listed.find(key)["id"]) for key in keys)
    items = tuple(listed.items[key] for key in stored if known.get(key) != listed.items[key])
    return AddedReferences(items=items, keys=keys, merged=tuple(key for key in known if key not in listed.items))
