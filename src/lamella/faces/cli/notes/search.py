"""``lamella search`` and ``lamella index``: passages of a vault, and the index that finds them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.engine.checks import check_text
from lamella.engine.notes import MOST_HITS
from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption
from lamella.faces.cli.tables.hits import print_hits
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.views.notes import view_hits, view_index
from lamella.wiring import find_vault, open_notes

if TYPE_CHECKING:
    from lamella.engine.notes import NoteIndex
    from lamella.holdings import IndexReport

_SHOWN = 3
VaultFolder = Annotated[
    Path | None,
    typer.Option(
        "--vault", help="A folder of notes; else the vault that the working folder is in.", show_default=False
    ),
]


def search(
    *,
    query: Annotated[
        str,
        typer.Argument(
            help='Words, [[Note]], #tag, path:FOLDER, "in quotes" what must stand so; times such as "last week".'
        ),
    ],
    vault: VaultFolder = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_HITS, help="How many passages to show at most.")] = 10,
    as_json: JsonOption = False,
) -> int:
    """Find passages in the notes of a vault, the best first, offline. Exit 1 if there are none.

    lamella search "what is decided" --vault examples/vault
    """
    wanted, folder = check_text(query, "query"), find_vault(vault)
    if not wanted.strip():
        raise UsageError("There is nothing to search for.", hint='Give words, as in lamella search "what is decided".')
    with open_notes(folder) as notes:
        report = _refresh(notes, folder)
        _tell_trouble(report, shown=_SHOWN)
        hits = notes.search(wanted, limit=limit, refresh=False)
    if as_json:
        tell_json(view_hits(query, hits, report))
    else:
        print_hits(hits)
        if not hits:
            tell(f"Nothing in {tell_count(report.files, 'file')} fits that.", err=True)
    return 0 if hits else 1


def index(
    *,
    vault: VaultFolder = None,
    anew: Annotated[bool, typer.Option("--anew", help="Forget the index and read every file again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring the index of a vault up to date, or make it anew, and tell what is in it. Searching does this by itself.

    lamella index --vault examples/vault
    """
    folder = find_vault(vault)
    with open_notes(folder) as notes:
        report = _refresh(notes, folder, anew=anew)
    if as_json:
        tell_json(view_index(report, file=str(notes.file)))
        return
    changed = f"{tell_count(report.read, 'file')} read, {report.removed:,} removed"
    tell(f"{tell_count(report.files, 'file')} indexed: {changed}, {len(report.unread):,} not readable.")
    _tell_trouble(report, shown=len(report.unread))
    tell(f"The index is {show_line(str(notes.file))}")


def _refresh(notes: "NoteIndex", folder: Path, *, anew: bool = False) -> "IndexReport":
    with told_if_slow(f"Indexing {folder}") as waiting:
        return notes.refresh(tell=waiting.count, anew=anew)


def _tell_trouble(report: "IndexReport", *, shown: int) -> None:
    """What was not as it should be, on stderr: an index made anew, files that are not searched."""
    if report.rebuilt:
        tell(f"The index was made anew: {show_line(report.rebuilt)}.", err=True)
    for path, why in report.unread[:shown]:
        tell(f"not searched: {show_line(path)}: {show_line(why)}", err=True)
    if len(report.unread) > shown:
        tell(f"not searched: {len(report.unread) - shown:,} more; `lamella index` lists them.", err=True)
