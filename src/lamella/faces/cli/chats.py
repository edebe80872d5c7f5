"""``lamella chats``: the conversations of a store, as wholes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.errors import UsageError
from lamella.faces.cli.access import (
    ChatName,
    JsonOption,
    StoreOption,
    name_command,
    opened,
    opened_backend,
    opened_chat,
)
from lamella.faces.cli.several import Done, Findings, do_each
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import ask_yes, tell, tell_done, tell_json
from lamella.views.outcomes import view_hits, view_outcome
from lamella.views.stores import view_chats
from lamella.wiring import list_conversations

if TYPE_CHECKING:
    from lamella.engine.keeping.backend import Backend
    from lamella.engine.keeping.conversations import Conversations, Hit
    from lamella.holdings import ChatListing

# How many of a file are shown: more than that nobody reads.
_WARNINGS = 100

chats = typer.Typer(
    name="chats", help="List, read, search, change, move and erase conversations.", no_args_is_help=False
)


@chats.command("list")
def list_chats(
    *,
    utc: Annotated[bool, typer.Option("--utc", help="Show times in UTC, not as clocks here do.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Every conversation, the last changed first."""
    rows = view_chats(list_conversations(store))
    if as_json:
        tell_json({"chats": rows})
        return
    if not rows:
        begin, bring = (name_command(command, store=store) for command in ("chat", "chats import"))
        tell(f"No conversations yet. Begin one with `{begin}`, or bring some in with `{bring}`.")
        return
    from lamella.faces.cli.tables.chats import print_chats  # only a list that has rows is a table

    print_chats(rows, utc=utc)


@chats.command()
def show(
    *,
    chat: ChatName,
    branch: Annotated[str | None, typer.Option(help="Show another branch, by its last message.")] = None,
    sources: Annotated[bool, typer.Option("--sources", help="Show the passages that answers cite.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """What was said and called for, with message ids to fork at, where it was compacted, and the other branches."""
    # What lists do without is imported here: it takes long.
    from lamella.engine.keeping.conversations import Conversations
    from lamella.engine.keeping.marks import find_marks
    from lamella.engine.sources import list_source_hashes, read_sources
    from lamella.faces.cli.tables.said import tell_said, tell_source, tell_uncited, tell_waiting
    from lamella.views.chats import list_rounds, view_branch_said, view_rounds, view_said, view_sources

    with opened_backend(store) as backend:
        conversations = Conversations(backend.store, backend.clock)
        found = conversations.find(chat)
        key = found.conversation
        log = conversations.load_log(key)
        marks = find_marks(key, backend.store.load(key)) if log.compactions else ()
        if branch is not None and branch not in log.nodes:
            raise UsageError(f"{chat} has no message {branch}.", hint=f"Its branches: {', '.join(log.branches())}.")
        path = log.path(branch)
        named = [name for told in path for one in list_rounds(told) for name in one.hashes()]
        named += [name for told in path for name in list_source_hashes(told)]
        contents = backend.store.read_contents(key, named) if named else {}
    cited = [read_sources(told, contents) for told in path]
    if as_json:
        said = view_branch_said(path, contents, marks=marks, sources=cited)
        branches = list(log.branches())
        tell_json(view_outcome(key, found.name, title=found.title, head=branch or log.head, branches=branches, **said))
        return
    for told, listed in zip(path, cited, strict=True):
        for line in tell_said(view_said(told), marks, view_rounds(told, contents)):
            tell(line)
        for source in view_sources(listed) if sources else ():
            tell("\n".join(tell_source(source)))
    tell_uncited(wanted=sources, cited=any(cited))
    if branch is None and path and path[-1].reply is None:
        tell(tell_waiting(name_command("chats resume", found.name, store=store)))
    others = [name for name in log.branches() if name != (branch or log.head)]
    if others:
        tell(f"other branches: {', '.join(others)}")


@chats.command()
def export(
    *,
    chat: Annotated[
        list[str] | None,
        typer.Argument(help="Conversations to export, as `lamella chats list` shows them; none with --all."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Export every conversation.")] = False,
    to: Annotated[Path, typer.Option(help="The folder for the files.")] = Path(),
    transcript: Annotated[
        bool, typer.Option("--transcript", help="Write transcripts, which `lamella replay` takes, instead of markdown.")
    ] = False,
    vault: Annotated[
        Path | None, typer.Option(help="Leave out the text of notes that this vault has just as they were.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write conversations as markdown; saving again updates the same file, also after it was renamed."""
    if bool(chat) == every:
        raise UsageError("Name conversations, or say --all.", hint=f"See `{name_command('chats list', store=store)}`.")
    if transcript and vault is not None:
        raise UsageError("--transcript excludes --vault.", hint="A transcript has the text of every note with it.")
    with opened_backend(store) as backend:
        conversations = _keep(backend)
        chosen = [conversations.find(words) for words in chat] if chat else conversations.list_alive()

        def write(listed: "ChatListing") -> Done:
            key = listed.conversation
            if transcript:
                file = str(_save_transcript(backend, key, to))
            else:
                file = str(_save_archive(conversations, key, to, vault=vault))
            return {"conversation": key, "name": listed.name, "file": file}, [file]

        do_each({listed.name: listed for listed in chosen}, write, what="Exporting", store=store, as_json=as_json)


def _keep(backend: "Backend") -> "Conversations":
    from lamella.engine.keeping.conversations import Conversations  # lists do without

    return Conversations(backend.store, backend.clock)


def _save_archive(conversations: "Conversations", name: str, folder: Path, *, vault: Path | None) -> Path:
    from lamella.wiring import open_archive  # only those who write archives need them

    return open_archive().save(conversations.take_out(name), folder, vault=vault)


def _save_transcript(backend: "Backend", name: str, folder: Path) -> Path:
    from lamella.engine.script import read_script  # only those who write transcripts need them
    from lamella.wiring import save_transcript

    return save_transcript(read_script(backend, name), folder)


@chats.command("import")
def import_chats(
    *,
    files: Annotated[list[Path], typer.Argument(help="Markdown archives, of Lamella or of Obsidian Copilot.")],
    vault: Annotated[Path | None, typer.Option(help="The vault that the archives' notes are in.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring archived conversations in; one that is there already is extended, never doubled."""
    from lamella.wiring import open_archive  # only those who read archives need them

    archive = open_archive()
    with opened(store, create=True) as conversations:

        def bring_in(file: Path) -> Done:
            chronicle = archive.load(file, vault=vault, held=conversations.read_contents)
            outcome, name = str(conversations.take_in(chronicle)), conversations.name_of(chronicle.conversation)
            told = f"{outcome}  {show_line(name)}  {show_line(chronicle.title)}".rstrip()
            done = {
                "file": str(file),
                "outcome": outcome,
                "conversation": chronicle.conversation,
                "name": name,
                "title": chronicle.title,
                "warnings": list(chronicle.warnings),
            }
            return done, [told, *_tell_warnings(file.name, chronicle.warnings)]

        do_each({str(file): file for file in files}, bring_in, what="Importing", store=store, as_json=as_json)


def _tell_warnings(file: str, warnings: Sequence[str]) -> list[str]:
    shown = [f"warning: {show_line(f'{file}: {warning}')}" for warning in warnings[:_WARNINGS]]
    more = len(warnings) - len(shown)
    return [*shown, f"warning: {show_line(file)}: {tell_count(more, 'more warning')}"] if more else shown


@chats.command()
def fork(
    *,
    chat: ChatName,
    message: Annotated[
        str | None, typer.Argument(help="The message to go on from, as `lamella chats show` names it.")
    ] = None,
    at: Annotated[str | None, typer.Option(help="The same, as an option.", hidden=True)] = None,
    into: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Go on in a new conversation of this name; this one stays as it is."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on from an earlier message, or switch to a branch by its last one; the old branch stays."""
    if (message is None) == (at is None):
        shown = name_command("chats show", chat, store=store)
        raise UsageError("Name one message to go on from.", hint=f"See `{shown}`.")
    head = message or at or ""
    if into is None:
        with opened(store) as conversations:
            found = conversations.find(chat)
            conversations.fork(found.conversation, head)
        body = view_outcome(found.conversation, found.name, head=head)
        tell_done(f"{show_line(found.name)} goes on from {head}.", body, as_json=as_json)
        return
    if not into.strip():
        raise UsageError("--into is blank.", hint="Name the new conversation.")
    from lamella.engine.keeping.forking import fork_into  # only those who fork into another need it

    with opened_backend(store) as backend:
        found = _keep(backend).find(chat)
        fork_into(backend, found.conversation, head, name=into)
        new = _keep(backend).find(into)
    talk = name_command("chat", into, store=store)
    told = f"{show_line(into)} goes on from {head} of {show_line(found.name)}. Talk in it: {talk}"
    origin = {"conversation": found.conversation, "name": found.name, "message": head}
    tell_done(told, view_outcome(new.conversation, new.name, forked=origin), as_json=as_json)


MessageName = Annotated[str, typer.Argument(help="A message, as `lamella chats show` names it.")]
_Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Another model.", show_default=False)]
_Answer = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, help="How long the answer may be, in tokens; else 1,024.", show_default=False),
]


@chats.command()
def edit(
    *,
    chat: ChatName,
    message: MessageName,
    text: Annotated[str, typer.Argument(help="What to ask in its place, with the same attachments.")],
    model: _Model = None,
    max_tokens: _Answer = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask something else in place of a question, and print the answer; the old branch stays."""
    from lamella.faces.cli.rewriting import ask_instead  # only those who send need it

    ask_instead(chat, message, text, model=model, answer_tokens=max_tokens, store=store, as_json=as_json)


@chats.command()
def regenerate(
    *,
    chat: ChatName,
    message: Annotated[str | None, typer.Argument(help="A question or its answer; else the last.")] = None,
    model: _Model = None,
    max_tokens: _Answer = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have a question answered again, and print the answer; the old one stays on its branch."""
    from lamella.faces.cli.rewriting import answer_again  # only those who send need it

    answer_again(chat, message, model=model, answer_tokens=max_tokens, store=store, as_json=as_json)


@chats.command()
def resume(
    *,
    chat: ChatName,
    vault: Annotated[Path | None, typer.Option(help="The folder of notes that its tools look in.")] = None,
    model: _Model = None,
    max_tokens: _Answer = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a question that was left without an answer, by the runner it was asked with, and print the answer.

    Another model is asked it from its start.
    """
    from lamella.faces.cli.rewriting import go_on  # only those who send need it

    go_on(chat, vault=vault, model=model, answer_tokens=max_tokens, store=store, as_json=as_json)


@chats.command()
def remove(*, chat: ChatName, message: MessageName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Go on without a message, on a branch of its own; a question goes with its answer. Nothing is erased."""
    with opened_chat(store, chat) as stored:
        stored.delete(message)
    body = view_outcome(stored.id, stored.name, removed=message, head=stored.head)
    tell_done(f"{show_line(stored.name)} goes on without {message}.", body, as_json=as_json)


@chats.command()
def rename(
    *,
    chat: ChatName,
    title: Annotated[str, typer.Argument(help="The new title.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a conversation a title."""
    with opened(store) as conversations:
        found = conversations.find(chat)
        conversations.rename(found.conversation, title)
    body = view_outcome(found.conversation, found.name, title=title)
    tell_done(f"{show_line(found.name)} is now called {show_line(title)}.", body, as_json=as_json)


@chats.command()
def delete(
    *,
    chat: ChatName,
    artifact: Annotated[str | None, typer.Option(help="Erase only this artifact, in all its versions.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase a conversation, or one artifact of it, for good. A tombstone stays; what others share stays theirs."""
    with opened(store) as conversations:
        found = conversations.find_erasable(chat)
        what = f"{artifact} in {found.name}" if artifact else found.name
        if not yes and not ask_yes(f"Erase {show_line(what)} for good?", err=as_json):
            raise UsageError("Nothing was erased.", hint="Say --yes to erase without being asked.")
        contents = None
        if artifact:
            contents = conversations.erase_artifact(found.conversation, artifact)
            what = f"{artifact}: {tell_count(contents, 'content')}"
        else:
            conversations.erase(found.conversation)
    proof = name_command("store verify", erased=found.conversation, store=store)
    body = view_outcome(found.conversation, found.name, artifact=artifact, contents=contents, proof=proof)
    tell_done(f"Erased {show_line(what)}. See that nothing is left: {proof}", body, as_json=as_json)


@chats.command()
def search(
    *,
    words: Annotated[str, typer.Argument(help="Words to look for, as they stand there; capitals do not matter.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Every message, on every branch, that holds the words; attachments are not searched. Exit 1 if there is none."""
    if not words.strip():
        raise UsageError("There are no words to look for.", hint='As in: lamella chats search "high tide"')
    found: Findings[Hit] = Findings(store)
    with opened(store) as conversations, told_if_slow("Searching") as waiting:
        for hit in found.gather(conversations.search(words)):
            if not as_json:
                with waiting.hidden():
                    tell(f"{show_line(hit.name)}  {hit.message}  {hit.role}: {show_line(hit.excerpt)}")
    none = "No message has these words. What was attached is not searched."
    return found.tell_end(view_hits(found), none=none, as_json=as_json)
