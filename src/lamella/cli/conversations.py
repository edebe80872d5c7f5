"""``lamella chats``: list, read, search, change, move and erase stored conversations."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.cli.access import (
    ChatArgument,
    JsonOption,
    StoreOption,
    format_command,
    open_cli_backend,
    open_cli_repository,
    open_conversation,
)
from lamella.cli.batch import SearchHitCollector, run_each_and_print_results
from lamella.cli.output import (
    confirm,
    escape_to_short_line,
    format_count,
    print_json,
    print_result,
    print_text,
    show_if_slow,
)
from lamella.errors import UsageError
from lamella.schemas.conversations import (
    ConversationListJson,
    CreatedConversationJson,
    ErasureResultJson,
    ExportedFileJson,
    ExportResultsJson,
    ForkedConversationJson,
    ForkOriginJson,
    ImportedFileJson,
    ImportResultsJson,
    RemovedMessageJson,
    conversations_to_json,
    message_hits_to_json,
)
from lamella.wiring import list_conversations

if TYPE_CHECKING:
    from lamella.conversation.backend import Backend
    from lamella.conversation.import_export import ConversationRepository, MessageHit
    from lamella.ports import ConversationListItem

# How many warnings are shown per imported file.
_WARNINGS = 100

chats = typer.Typer(
    name="chats", help="List, read, search, edit, export and delete conversations.", no_args_is_help=False
)


@chats.command("list")
def list_chats(
    *,
    utc: Annotated[bool, typer.Option("--utc", help="Show times in UTC instead of local time.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List conversations, the last changed first."""
    rows = conversations_to_json(list_conversations(store))
    if as_json:
        print_json(ConversationListJson(chats=rows))
        return
    if not rows:
        begin, bring = (format_command(command, store=store) for command in ("chat", "chats import"))
        print_text(f"No conversations yet. Start one with `{begin}`, or import some with `{bring}`.")
        return
    from lamella.cli.tables import print_chats  # only a list with rows needs a table

    print_chats(rows, utc=utc)


@chats.command()
def show(
    *,
    chat: ChatArgument,
    branch: Annotated[str | None, typer.Option(help="Branch to show, named by its last message.")] = None,
    sources: Annotated[bool, typer.Option("--sources", help="Show the passages that answers cite.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the messages of a conversation with their ids."""
    # Imported here: these modules are slow to import, and listing conversations does not need them.
    from lamella.cli.prompt_tables import (
        format_cut_answer,
        format_source_lines,
        format_turn,
        format_unanswered_question_hint,
        print_if_no_sources,
    )
    from lamella.conversation.import_export import ConversationRepository
    from lamella.conversation.log import list_compactions_and_undos
    from lamella.conversation.note_index import list_citation_hashes, read_citations
    from lamella.schemas.messages import ShownConversationJson, list_stored_rounds, markers_to_json, turns_to_json

    with open_cli_backend(store) as backend:
        conversations = ConversationRepository(backend.store, backend.clock)
        found = conversations.resolve_conversation(chat)
        key = found.conversation
        log = conversations.load_log(key)
        markers = list_compactions_and_undos(key, backend.store.load(key)) if log.compactions else ()
        if branch is not None and branch not in log.nodes:
            raise UsageError(
                f"Message not found in {chat}: {branch}", hint=f"Branches: {', '.join(log.list_branch_heads())}"
            )
        path = log.branch_records(branch)
        named = [name for record in path for one in list_stored_rounds(record) for name in one.iter_content_hashes()]
        named += [name for record in path for name in list_citation_hashes(record)]
        contents = backend.store.read_contents(key, named) if named else {}
    cited = [read_citations(record, contents) for record in path]
    turns = turns_to_json(path, contents, cited)
    if as_json:
        print_json(
            ShownConversationJson(
                conversation=key,
                name=found.name,
                title=found.title,
                head=branch or log.head,
                branches=list(log.list_branch_heads()),
                turns=turns,
                compactions=markers_to_json(markers),
            )
        )
        return
    for turn in turns:
        for line in format_turn(turn, markers, turn.rounds):
            print_text(line)
        for source in turn.sources if sources else ():
            print_text("\n".join(format_source_lines(source)))
    print_if_no_sources(requested=sources, has_sources=any(cited))
    if branch is None and path and path[-1].reply is None:
        print_text(format_unanswered_question_hint(format_command("chats resume", found.name, store=store), path[-1]))
    if branch is None and path and path[-1].cut_reason is not None:
        print_text(format_cut_answer(format_command("chats resume", found.name, store=store)))
    others = [name for name in log.list_branch_heads() if name != (branch or log.head)]
    if others:
        print_text(f"other branches: {', '.join(others)}")


@chats.command()
def export(
    *,
    chat: Annotated[
        list[str] | None,
        typer.Argument(help="Conversations to export, by name or title."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Export every conversation.")] = False,
    to: Annotated[Path, typer.Option(help="Folder to write to.")] = Path(),
    transcript: Annotated[
        bool, typer.Option("--transcript", help="Write transcripts for `lamella replay` instead of Markdown.")
    ] = False,
    vault: Annotated[
        Path | None, typer.Option(help="Notes folder; the text of its unchanged notes is not exported.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write conversations to Markdown files.

    Exporting again updates the same file, even if it was renamed.
    """
    if bool(chat) == every:
        raise UsageError(
            "Give either conversations or --all.", hint=f"See `{format_command('chats list', store=store)}`."
        )
    if transcript and vault is not None:
        raise UsageError(
            "Use either --transcript or --vault, not both.", hint="A transcript contains the text of every note."
        )
    with open_cli_backend(store) as backend:
        conversations = _open_repository(backend)
        chosen = (
            [conversations.resolve_conversation(words) for words in chat]
            if chat
            else conversations.list_conversations()
        )

        def write(listed: "ConversationListItem") -> tuple[ExportedFileJson, Sequence[str]]:
            key = listed.conversation
            archive = partial(_save_archive, conversations, key, to, vault=vault)
            file = str(_save_transcript(backend, key, to) if transcript else archive())
            return ExportedFileJson(conversation=key, name=listed.name, file=file), [file]

        run_each_and_print_results(
            {listed.name: listed for listed in chosen},
            write,
            make_body=lambda done, failed: ExportResultsJson(done=done, failed=failed),
            description="Exporting",
            store=store,
            as_json=as_json,
        )


def _open_repository(backend: "Backend") -> "ConversationRepository":
    from lamella.conversation.import_export import ConversationRepository  # lists do not need it

    return ConversationRepository(backend.store, backend.clock)


def _save_archive(conversations: "ConversationRepository", name: str, folder: Path, *, vault: Path | None) -> Path:
    from lamella.wiring import open_archive  # only exports need it

    return open_archive().save(conversations.export_conversation(name), folder, vault=vault)


def _save_transcript(backend: "Backend", name: str, folder: Path) -> Path:
    from lamella.cli.transcripts import differing_turns_note
    from lamella.conversation.transcript import load_export_script  # only transcripts need it
    from lamella.wiring import save_transcript

    script = load_export_script(backend, name)
    if script.differing_turns:
        print_text(f"{escape_to_short_line(script.name)}  {differing_turns_note(script.differing_turns)}", err=True)
    return save_transcript(script, folder)


@chats.command("import")
def import_chats(
    *,
    files: Annotated[list[Path], typer.Argument(help="Markdown files written by Lamella or by Obsidian Copilot.")],
    vault: Annotated[Path | None, typer.Option(help="Notes folder that the files refer to.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import archived conversations.

    A conversation that exists already is extended, not duplicated.
    """
    from lamella.wiring import open_archive  # only imports need it

    archive = open_archive()
    with open_cli_repository(store, create=True) as conversations:

        def bring_in(file: Path) -> tuple[ImportedFileJson, Sequence[str]]:
            export = archive.load(
                file, vault=vault, read_contents=conversations.read_contents, is_erased=conversations.is_erased
            )
            warnings = (*export.warnings, *conversations.list_import_warnings(export))
            outcome, name = (
                str(conversations.import_conversation(export)),
                conversations.conversation_name(export.conversation_key),
            )
            line = f"{outcome}  {escape_to_short_line(name)}  {escape_to_short_line(export.title)}".rstrip()
            done = ImportedFileJson(
                file=str(file),
                outcome=outcome,
                conversation=export.conversation_key,
                name=name,
                title=export.title,
                warnings=warnings,
            )
            return done, [line, *_format_warnings(file.name, warnings)]

        run_each_and_print_results(
            {str(file): file for file in files},
            bring_in,
            make_body=lambda done, failed: ImportResultsJson(done=done, failed=failed),
            description="Importing",
            store=store,
            as_json=as_json,
        )


def _format_warnings(file: str, warnings: Sequence[str]) -> list[str]:
    shown = [f"warning: {escape_to_short_line(f'{file}: {warning}')}" for warning in warnings[:_WARNINGS]]
    more = len(warnings) - len(shown)
    return [*shown, f"warning: {escape_to_short_line(file)}: {format_count(more, 'more warning')}"] if more else shown


@chats.command()
def fork(
    *,
    chat: ChatArgument,
    message: Annotated[str | None, typer.Argument(help="Id of the message to continue from.")] = None,
    at: Annotated[str | None, typer.Option(help="The same, as an option.", hidden=True)] = None,
    into: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Continue in a new conversation of this name; this one does not change."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue from an earlier message, or switch to another branch.

    The current branch is not deleted. `lamella chats show` prints the ids of messages.
    """
    if (message is None) == (at is None):
        shown = format_command("chats show", chat, store=store)
        raise UsageError("Missing message to continue from.", hint=f"See `{shown}`.")
    head = message or at or ""
    if into is None:
        with open_cli_repository(store) as conversations:
            found = conversations.resolve_conversation(chat)
            conversations.fork(found.conversation, head)
        body = ForkedConversationJson(conversation=found.conversation, name=found.name, head=head)
        print_result(f"{escape_to_short_line(found.name)} continues from {head}.", body, as_json=as_json)
        return
    if not into.strip():
        raise UsageError("--into is blank.", hint="Give the new conversation a name.")
    from lamella.conversation.import_export import copy_branch_into_new_conversation  # only --into needs it

    with open_cli_backend(store) as backend:
        found = _open_repository(backend).resolve_conversation(chat)
        copy_branch_into_new_conversation(backend, found.conversation, head, name=into)
        new = _open_repository(backend).resolve_conversation(into)
    talk = format_command("chat", into, store=store)
    line = f"{escape_to_short_line(into)} continues from {head} of {escape_to_short_line(found.name)}. Open it with: {talk}"
    origin = ForkOriginJson(conversation=found.conversation, name=found.name, message=head)
    body = ForkedConversationJson(conversation=new.conversation, name=new.name, forked=origin)
    print_result(line, body, as_json=as_json)


MessageName = Annotated[str, typer.Argument(help="Message id; `lamella chats show` prints the ids.")]
_Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Model to use.", show_default="the conversation's model")
]
_Answer = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, help="Maximum answer length in tokens.", show_default="1024"),
]


@chats.command()
def edit(
    *,
    chat: ChatArgument,
    message: MessageName,
    text: Annotated[str, typer.Argument(help="New text of the question; the attachments stay.")],
    model: _Model = None,
    max_tokens: _Answer = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Edit a question and answer it again, on a new branch."""
    from lamella.cli.rewrite import edit_question  # only sending needs it

    edit_question(chat, message, text, model=model, max_answer_tokens=max_tokens, store=store, as_json=as_json)


@chats.command()
def regenerate(
    *,
    chat: ChatArgument,
    message: Annotated[str | None, typer.Argument(help="Question or answer id.", show_default="the last")] = None,
    model: _Model = None,
    max_tokens: _Answer = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question again; the old answer stays on its branch."""
    from lamella.cli.rewrite import regenerate_answer  # only sending needs it

    regenerate_answer(chat, message, model=model, max_answer_tokens=max_tokens, store=store, as_json=as_json)


@chats.command()
def resume(
    *,
    chat: ChatArgument,
    vault: Annotated[Path | None, typer.Option(help="Notes folder for the tools.")] = None,
    model: _Model = None,
    max_tokens: _Answer = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue an unanswered question, or an answer that was cut off, and print the answer.

    With another model, the question starts from the beginning.
    """
    from lamella.cli.rewrite import resume_question  # only sending needs it

    resume_question(chat, vault=vault, model=model, max_answer_tokens=max_tokens, store=store, as_json=as_json)


@chats.command()
def remove(*, chat: ChatArgument, message: MessageName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Continue without a message, on a new branch.

    A question is removed with its answer. The old branch is not deleted.
    """
    with open_conversation(store, chat) as conversation_log:
        conversation_log.delete(message)
    body = RemovedMessageJson(
        conversation=conversation_log.id, name=conversation_log.name, removed=message, head=conversation_log.head
    )
    print_result(f"{escape_to_short_line(conversation_log.name)} continues without {message}.", body, as_json=as_json)


@chats.command()
def rename(
    *,
    chat: ChatArgument,
    title: Annotated[str, typer.Argument(help="New title.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the title of a conversation."""
    with open_cli_repository(store) as conversations:
        found = conversations.resolve_conversation(chat)
        conversations.rename(found.conversation, title)
    body = CreatedConversationJson(conversation=found.conversation, name=found.name, title=title)
    print_result(f"Title of {escape_to_short_line(found.name)}: {escape_to_short_line(title)}", body, as_json=as_json)


@chats.command()
def delete(
    *,
    chat: ChatArgument,
    artifact: Annotated[str | None, typer.Option(help="Delete only this attachment, in all versions.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a conversation, or one of its attachments, permanently.

    A record of the deletion remains. Text that other conversations use is not deleted.
    """
    with open_cli_repository(store) as conversations:
        found = conversations.get_conversation_or_tombstone(chat)
        what = f"{artifact} in {found.name}" if artifact else found.name
        if not yes and not confirm(f"Delete {escape_to_short_line(what)} permanently?", err=as_json):
            raise UsageError("Nothing was deleted.", hint="Add --yes to delete without confirmation.")
        contents = None
        if artifact:
            contents = conversations.erase_artifact(found.conversation, artifact)
            what = f"{artifact}: {format_count(contents, 'content')}"
        else:
            conversations.erase(found.conversation)
    proof = format_command("store verify", erased=found.conversation, store=store)
    body = ErasureResultJson(
        conversation=found.conversation, name=found.name, artifact=artifact, contents=contents, proof=proof
    )
    print_result(f"Deleted {escape_to_short_line(what)}. To check that nothing is left: {proof}", body, as_json=as_json)


@chats.command()
def search(
    *,
    words: Annotated[str, typer.Argument(help="Text to find; upper and lower case are equal.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Search the messages of all conversations and branches.

    Attachments are not searched. Exits with 1 if nothing is found.
    """
    if not words.strip():
        raise UsageError("Missing search words.", hint='Example: lamella chats search "high tide"')
    found: SearchHitCollector[MessageHit] = SearchHitCollector(store)
    with open_cli_repository(store) as conversations, show_if_slow("Searching") as waiting:
        for hit in found.collect(conversations.search(words)):
            if not as_json:
                with waiting.hidden():
                    print_text(
                        f"{escape_to_short_line(hit.name)}  {hit.message}  {hit.role}: {escape_to_short_line(hit.excerpt)}"
                    )
    none = "No message contains these words. Attachments are not searched."
    return found.print_results(message_hits_to_json(found), empty_message=none, as_json=as_json)
