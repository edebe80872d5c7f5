"""A turn's terms as its event gives them: each may be given, left to the settings, or missing.

All of it follows from the fields of ``Terms``: a field that is added there is stored and read without a word here.
"""

from collections.abc import Mapping
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET, Struct, UnsetType, defstruct
from msgspec.structs import fields
from msgspec.structs import replace as replace_fields

from lamella.core.log.terms import IMAGE_NOTES_SWITCH, Terms

_FIELDS = fields(Terms)
_NAMES = tuple(field.name for field in _FIELDS)
_given = attrgetter(*_NAMES)
_USUAL = Terms()
# The first events gave these only where they were chosen. They are written always, and missing they are as usual; what
# came later is missing where it is as it was before there was a choice.
_ALWAYS = ("layout", "carry_forward")
# What was a switch once, and what either side of it is now.
_SWITCHES = {"image_notes": IMAGE_NOTES_SWITCH}
# What an event holds that leaves its terms open; one null is enough to say so.
_OPEN = ("history", "image_notes")

if TYPE_CHECKING:

    class GivenTerms(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
        """The fields of ``Terms``, each of its type, null, or missing."""
else:
    GivenTerms = defstruct(
        "GivenTerms",
        [
            (field.name, (field.type | bool if field.name in _SWITCHES else field.type) | None | UnsetType, UNSET)
            for field in _FIELDS
        ],
        frozen=True,
        kw_only=True,
        gc=False,
        omit_defaults=True,
    )


Given = TypeVar("Given", bound=GivenTerms)


def give_terms(event: Given, terms: Terms, **place: str) -> Given:
    """An event that gives these terms, at its place; what is as it is by default is left out."""
    return replace_fields(event, **place, **_list_given(terms))


# Thousands of turns are asked under the same terms.
@lru_cache(maxsize=256)
def _list_given(terms: Terms) -> Mapping[str, object]:
    values = {name: getattr(terms, name) for name in _NAMES}
    return {name: value for name, value in values.items() if name in _ALWAYS or value != getattr(_USUAL, name)}


def leave_terms(event: Given) -> Given:
    """An event whose terms are left to the settings under which it goes on."""
    return replace_fields(event, **dict.fromkeys(_OPEN))


def leaves_open(event: object) -> bool:
    """Whether an event leaves its terms to the settings."""
    return any(getattr(event, name, UNSET) is None for name in _OPEN)


def settle_terms(event: GivenTerms, usual: Terms) -> Terms:
    """The terms that an event gives; what it leaves open, as older ones do, is as usual."""
    return _settle(_given(event), usual)


# Thousands of turns share a few terms; settling them was a third of what reading a long conversation took.
@lru_cache(maxsize=256)
def _settle(given: tuple[object, ...], usual: Terms) -> Terms:
    # Where one is left open all that are missing are: nobody chose them either.
    missing = usual if None in given else _USUAL
    found = {
        name: getattr(usual if value is None or name in _ALWAYS else missing, name)
        if value is None or value is UNSET
        else value
        for name, value in zip(_NAMES, given, strict=True)
    }
    found |= {name: now[was] for name, now in _SWITCHES.items() if isinstance(was := found[name], bool)}
    return replace_fields(_USUAL, **found)
