"""``lamella search`` and ``lamella index``: find passages of a vault, and maintain its index."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.cli.access import JsonOption
from lamella.cli.output import escape_to_short_line, format_count, print_json, print_text, show_if_slow
from lamella.cli.tables import print_note_hits
from lamella.conversation.note_index import MAX_HITS
from lamella.conversation.validation import check_text
from lamella.errors import UsageError, WriteDeniedError
from lamella.schemas.catalog import format_argument_names, tools_to_json
from lamella.schemas.library import RestoredNoteJson, hits_to_json, index_to_json
from lamella.wiring import (
    choose_memory_renderer,
    make_memory_opener,
    open_note_index,
    open_note_writer,
    open_repository_editor,
    open_runner_context,
    read_services,
    resolve_vault_path,
)

if TYPE_CHECKING:
    from lamella.conversation.note_index import NoteIndex
    from lamella.ports import IndexReport
    from lamella.vault_writer import NoteWriter

_MAX_SHOWN_PROBLEMS = 3
VaultFolderOption = Annotated[
    Path | None,
    typer.Option("--vault", help="Notes folder.", show_default="the vault around the current folder"),
]


def search(
    *,
    query: Annotated[
        str,
        typer.Argument(help='Words, "exact phrase", [[Note]], #tag, path:FOLDER, or a time such as last week.'),
    ],
    vault: VaultFolderOption = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_HITS, help="Maximum number of passages.")] = 10,
    as_json: JsonOption = False,
) -> int:
    """Search the notes of a vault, offline. Exits with 1 if nothing is found.

    lamella search "what is decided" --vault examples/vault
    """
    words, folder = check_text(query, "query"), resolve_vault_path(vault)
    if not words.strip():
        raise UsageError("Missing search words.", hint='Example: lamella search "what is decided"')
    with open_note_index(folder) as notes:
        report = _refresh_index(notes, folder)
        _print_index_problems(report, max_shown=_MAX_SHOWN_PROBLEMS)
        hits = notes.search(words, limit=limit, refresh=False)
    if as_json:
        print_json(hits_to_json(query, hits, report))
    else:
        print_note_hits(hits)
        if not hits:
            print_text(f"No matches in {format_count(report.file_count, 'file')}.", err=True)
    return 0 if hits else 1


def index(
    *,
    vault: VaultFolderOption = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Delete the index and read every file again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Update or rebuild the search index of a vault.

    `lamella search` updates the index itself.

    lamella index --vault examples/vault
    """
    folder = resolve_vault_path(vault)
    with open_note_index(folder) as notes:
        report = _refresh_index(notes, folder, rebuild=rebuild)
    if as_json:
        print_json(index_to_json(report, file=str(notes.file)))
        return
    changed = f"{format_count(report.read_count, 'file')} read, {report.removed_count:,} removed"
    print_text(f"{format_count(report.file_count, 'file')} indexed: {changed}, {len(report.unread):,} not readable.")
    _print_index_problems(report, max_shown=len(report.unread))
    print_text(f"Index file: {escape_to_short_line(str(notes.file))}")


def _refresh_index(notes: "NoteIndex", folder: Path, *, rebuild: bool = False) -> "IndexReport":
    with show_if_slow(f"Indexing {folder}") as waiting:
        return notes.refresh(on_progress=waiting.set_count, rebuild=rebuild)


def _print_index_problems(report: "IndexReport", *, max_shown: int) -> None:
    """Print problems of the index on stderr: that it was rebuilt, and which files are not searched."""
    if report.rebuild_reason:
        print_text(f"The index was rebuilt: {escape_to_short_line(report.rebuild_reason)}.", err=True)
    for path, why in report.unread[:max_shown]:
        print_text(f"not searched: {escape_to_short_line(path)}: {escape_to_short_line(why)}", err=True)
    if len(report.unread) > max_shown:
        print_text(f"not searched: {len(report.unread) - max_shown:,} more; `lamella index` lists them.", err=True)


# ``lamella tools`` and ``lamella restore``: list the models' tools, and undo a change of a note or of code.


def tools(*, vault: VaultFolderOption = None, as_json: JsonOption = False) -> None:
    """List the tools that models may call.

    lamella tools --vault examples/vault
    """
    services = read_services()
    book = make_memory_opener(services, choose_memory_renderer(services, is_interactive=True))
    context = open_runner_context(services, vault=_find_vault(vault), open_memory=book)
    made = [tool.to_definition() for tool in context.make_tools(None)]
    if as_json:
        print_json(tools_to_json(made))
        return
    for one in made:
        print_text(f"{one.name}({', '.join(format_argument_names(one))})")
        print_text(f"    {escape_to_short_line(one.description)}")


def restore(
    *,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="Path of a note or of a file in the repository.", show_default="the last change"
        ),
    ] = None,
    vault: VaultFolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Undo the last change that a model made to a note or to code.

    Run it again to undo the change before that.
    """
    notes, code = _open_note_writer(vault), open_repository_editor(vault)
    note_change = None if notes is None else notes.last_change(file)
    code_change = code.last_change(file)
    if code_change is not None and (note_change is None or code_change.at > note_change.at):
        restored = code.restore(file)
    elif notes is not None:
        restored = [notes.restore(file)]
    else:
        named = f" of {file}" if file else ""
        raise WriteDeniedError(
            f"There is no change{named} to undo.",
            hint="Run it in the repository with the changed file, or name the vault with --vault.",
        )
    if as_json:
        path, removed = restored[0]
        print_json(RestoredNoteJson(path=path, removed=removed, paths=[path for path, _ in restored]))
        return
    for path, removed in restored:
        print_text(f"{'Removed (the text is in the backups)' if removed else 'Restored'}: {escape_to_short_line(path)}")


def _open_note_writer(vault: Path | None) -> "NoteWriter | None":
    """Return the writer of the named vault, or of the vault that contains the working folder; None without a vault."""
    found = _find_vault(vault)
    return None if found is None else open_note_writer(found, read_services())


def _find_vault(vault: Path | None) -> Path | None:
    """Return the vault, or None: without one there are fewer tools, which is not an error here."""
    if vault is not None:
        return vault
    with suppress(UsageError):
        return resolve_vault_path(None)
    return None
