"""An archive as text: a chronicle written out, and read back as it was."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lamella.adapters.archive.markdown.cargo import FileRef, part_contents
from lamella.adapters.archive.markdown.comment import parse_comment, render_comment, split_comment
from lamella.adapters.archive.markdown.front import Front, check_format, render_front, split_front
from lamella.adapters.archive.markdown.legacy import parse_legacy
from lamella.adapters.archive.markdown.page.edits import fold_edits
from lamella.adapters.archive.markdown.page.messages import parse_page, render_page, show_log
from lamella.adapters.archive.markdown.recovery.lookup import Lookup
from lamella.adapters.archive.markdown.recovery.recovery import recover_files
from lamella.adapters.archive.markdown.recovery.rewrite import rewrite_records
from lamella.adapters.archive.markdown.scribe import Scribe
from lamella.core.log.branch import check_node
from lamella.core.log.log import Log
from lamella.core.log.nodes import derive_id
from lamella.core.log.receipts import find_faulty_receipts
from lamella.core.log.records import Record
from lamella.core.text.content import encode_text
from lamella.core.values import replace
from lamella.errors import BadInputError, StoreDamagedError
from lamella.holdings import Chronicle
from lamella.ports import Sources

Held = Callable[[str, Sequence[str]], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What people added to a file that is not part of the conversation: front matter, and text before the messages."""

    front_lines: tuple[str, ...] = ()
    preface: str = ""


_NOTHING = Additions()
_HINT = "Only the visible text is for editing. Undo what was changed in the comment, or export the conversation again."


def render_archive(chronicle: Chronicle, *, sources: Sources | None = None, additions: Additions = _NOTHING) -> str:
    """A conversation as markdown. With ``sources``, a file that they do not give as it was rides along."""
    front = render_front(
        conversation=chronicle.conversation,
        name=chronicle.name,
        title=chronicle.title,
        created=chronicle.created,
        others=additions.front_lines,
    )
    log = fold_log(chronicle.conversation, chronicle.records)
    page = (f"{additions.preface}\n\n" if additions.preface else "") + render_page(show_log(log))
    return f"{front}\n{page}{render_comment(chronicle, part_contents(chronicle, sources))}"


def parse_archive(text: str, *, sources: Sources | None, held: Held | None = None) -> Chronicle:
    """The conversation that a markdown text holds; what could not be brought along is in its warnings.

    ``held`` gives those of a conversation's contents that a store has; for them no file is read.
    """
    front, body = split_front(unify_lines(text))
    if not front.is_ours:
        return parse_legacy(front, body, sources)
    chronicle, files = read_own(front, body)
    known = held(chronicle.conversation, [file.hash for file in files]) if held else {}
    recovery = recover_files([file for file in files if file.hash not in known], Lookup(sources))
    newer = {artifact.hash: encode_text(artifact.text) for artifact in recovery.changed.values()}
    return replace(
        chronicle,
        records=chronicle.records
        if recovery.is_exact
        else rewrite_records(chronicle.conversation, chronicle.records, recovery),
        contents={**chronicle.contents, **known, **recovery.contents, **newer},
        warnings=(*chronicle.warnings, *recovery.warnings),
    )


def read_own(front: Front, body: str) -> tuple[Chronicle, tuple[FileRef, ...]]:
    """An archive of Lamella, with what was edited in it by hand, and the files it only names."""
    visible, chronicle, files = read_written(front, body)
    return fold_in_edits(front, chronicle, visible), files


def read_written(front: Front, body: str) -> tuple[str, Chronicle, tuple[FileRef, ...]]:
    """An archive's visible text, the conversation as it was when it was written, and the files it only names."""
    check_format(front)
    visible, comment = split_comment(body)
    chronicle, files = parse_comment(comment)
    named = front.fields.get("conversation")
    if named != chronicle.conversation:
        raise BadInputError(
            f"The front matter names the conversation {named!r}; the comment holds {chronicle.conversation!r}.",
            hint="Put the id back into the front matter. To have a copy, import the archive and fork it.",
        )
    return visible, replace(chronicle, name=front.fields.get("name") or None), files


def read_additions(text: str) -> Additions:
    """What a file of ours has that is not ours."""
    front, body = split_front(unify_lines(text))
    visible, _ = split_comment(body)
    return Additions(front_lines=front.others, preface=parse_page(visible).preface)


def unify_lines(text: str) -> str:
    """A file's text whatever system or editor saved it last."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def fold_log(conversation: str, records: Iterable[Record]) -> Log:
    """A conversation's events, folded."""
    log = Log(conversation=conversation)
    log.extend(records)
    return log


def fold_in_edits(front: Front, chronicle: Chronicle, visible: str) -> Chronicle:
    """The conversation with what was edited by hand in its file since it was written."""
    title = front.fields.get("title") or chronicle.title
    log = _check_log(chronicle)
    records, warnings = fold_edits(log, parse_page(visible))
    if title != chronicle.title:
        scribe = Scribe(log=log)
        scribe.rename(title, at=(chronicle.records or records)[-1].at if log.version else chronicle.created)
        records = (*records, *scribe.records)
        warnings = (*warnings, "The title was changed by hand; the conversation is renamed.")
    return replace(chronicle, title=title, records=(*chronicle.records, *records), warnings=warnings)


def _check_log(chronicle: Chronicle) -> Log:
    """The log a comment holds; an error if its events do not fit together or do not do what they say."""
    try:
        log = fold_log(chronicle.conversation, chronicle.records)
        for node in log.nodes.values():
            check_node(node)
    except StoreDamagedError as error:
        raise BadInputError(f"The archive's comment is damaged: {error.message}", hint=_HINT) from error
    for node in log.nodes.values():
        if derive_id(chronicle.conversation, node.event) != node.id:
            raise BadInputError(
                f"The archive's comment is damaged: the message {node.id} has another text than it was written with.",
                hint=_HINT,
            )
    for number, fault in find_faulty_receipts(chronicle.records, said=log.said(), contents=chronicle.contents):
        raise BadInputError(f"The archive's comment is damaged: event {number}, a compaction, {fault}.", hint=_HINT)
    return log
