"""Word lists from data files: those that come with Lamella, and those of the user.

A data file is TOML. Its keys are the fields of ``WordLists``, each a list of phrases. A file of the user adds to the
lists that come with Lamella.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

import msgspec

from lamella.core.text.word_lists import WordLists, merge_word_lists, normalize_word_lists
from lamella.errors import SettingError

LANGUAGES = ("en", "id", "de", "ja")


@cache
def load_word_lists(*user_files: Path) -> WordLists:
    """Return the word lists that come with Lamella, with those of the given files.

    Raises ``SettingError`` if a file cannot be read or has other fields.
    """
    return normalize_word_lists(merge_word_lists([*_shipped_lists(), *_read_files(user_files)]))


@lru_cache(maxsize=1)
def _shipped_lists() -> tuple[WordLists, ...]:
    folder = files("lamella.settings") / "languages"
    texts = [(folder / f"{language}.toml").read_bytes() for language in LANGUAGES]
    return tuple([msgspec.toml.decode(text, type=WordLists) for text in texts])


def _read_files(paths: Iterable[Path]) -> list[WordLists]:
    found: list[WordLists] = []
    for path in paths:
        try:
            found.append(msgspec.toml.decode(path.read_bytes(), type=WordLists))
        except OSError as error:
            raise SettingError(
                f"The word list {path} cannot be read: {error.strerror or error}.",
                hint="Name a TOML file that exists in compaction.word_lists.",
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SettingError(
                f"{path} is no word list: {error}.",
                hint=f"Give lists of phrases under these names: {', '.join(WordLists.__struct_fields__)}.",
            ) from error
    return found
