"""Archives of Obsidian Copilot, and any file of ``**user**: `` and ``**ai**: `` messages: read as conversations.

Their context is notes by name, without a text: each is read as it is now. Where older exports have the text itself in
the message, that text is taken.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from lamella.adapters.archive.markdown.front import Front
from lamella.adapters.archive.markdown.legacy.blocks import extract_blocks
from lamella.adapters.archive.markdown.legacy.context import ContextReader
from lamella.adapters.archive.markdown.page.messages import MessagePair, ShownMessage, pair_messages, parse_page
from lamella.adapters.archive.markdown.page.stamps import read_epoch, read_time
from lamella.adapters.archive.markdown.recovery.lookup import Lookup
from lamella.adapters.archive.markdown.scribe import Scribe
from lamella.core.artifacts.model import Artifact
from lamella.core.log.events.artifact import gather_contents
from lamella.core.log.events.message import make_open_message
from lamella.core.log.log import Log
from lamella.core.log.turn import Turn
from lamella.core.text.content import encode_text
from lamella.errors import BadInputError
from lamella.holdings import Chronicle
from lamella.ports import Sources

_NEVER = "1970-01-01T00:00:00Z"
_ID_DIGITS = 16
_TITLE_LENGTH = 60


def parse_legacy(front: Front, body: str, sources: Sources | None) -> Chronicle:
    """The conversation in a file that is not an archive of Lamella."""
    page = parse_page(body, escaped=False)
    if not page.messages and body.lstrip().startswith(("{", "[")):
        raise BadInputError(
            "The file is JSON; archives are markdown.",
            hint="A transcript is replayed, not imported: `lamella replay FILE`. To move conversations, export them "
            "without --transcript, or copy the store; docs/coming-from.md shows how a list of messages is taken over.",
        )
    if not page.messages:
        raise BadInputError(
            "The file has no line that begins with `**user**: ` or `**ai**: `; it is no archive of a conversation.",
            hint="docs/archive.md shows the formats that can be imported.",
        )
    warnings = ["The text before the first message belongs to no message and is left out."] if page.preface else []
    pairs, paired = pair_messages(page.messages)
    file = _LegacyFile(front.fields, page.messages[0], lookup=Lookup(sources), warnings=[*warnings, *paired])
    for pair in pairs:
        file.read(pair)
    return file.chronicle()


class _LegacyFile:
    """One file, turn by turn."""

    def __init__(self, fields: Mapping[str, str], first: ShownMessage, *, lookup: Lookup, warnings: list[str]) -> None:
        self._warnings = warnings
        self._context = ContextReader(lookup, warnings)
        self._created = read_epoch(fields.get("epoch", "")) or read_time(first.stamp) or _NEVER
        self._at = self._created
        self._model = _model(fields.get("modelKey", ""))
        self._title = fields.get("topic", "").strip() or _title(extract_blocks(first.text).typed)
        self._contents: dict[str, bytes] = {}
        self._number = 0
        self._scribe = Scribe(log=Log(conversation=derive_conversation(fields, first)))
        if self._title:
            self._scribe.rename(self._title, at=self._created)

    def read(self, pair: MessagePair) -> None:
        """One turn: its question with what was attached to it, and its answer."""
        self._number += 1
        asked = extract_blocks(pair.user.text)
        if asked.artifacts:
            self._say(f"{len(asked.artifacts)} context blocks stood in its text and are its attachments now.")
        recalled = self._context.read(pair.user.context, number=self._number) if pair.user.context else ()
        attached = _unique((*asked.artifacts, *recalled))
        turn = Turn(text=asked.typed, typed=asked.typed, attached=attached, model=self._model)
        self._model = None
        self._contents.update(gather_contents(attached))
        self._scribe.ask(make_open_message(turn), at=self._time(pair.user))
        if pair.reply is not None:
            self._number += 1
            self._scribe.reply(pair.reply.text, at=self._time(pair.reply))

    def chronicle(self) -> Chronicle:
        """What was read."""
        return Chronicle(
            conversation=self._scribe.log.conversation,
            title=self._title,
            created=self._created,
            records=tuple(self._scribe.records),
            contents=self._contents,
            warnings=tuple(self._warnings),
        )

    def _time(self, shown: ShownMessage) -> str:
        """When it was said; where that cannot be read, when the message before it was."""
        at = read_time(shown.stamp)
        if at is None and shown.stamp:
            self._say(f"its time {shown.stamp!r} cannot be read; that of the message before is used.")
        self._at = at or self._at
        return self._at

    def _say(self, what: str) -> None:
        self._warnings.append(f"Message {self._number}: {what}")


def derive_conversation(fields: Mapping[str, str], first: ShownMessage) -> str:
    """An id that the same conversation has each time it is imported: from its beginning, which later turns leave."""
    epoch = fields.get("epoch", "").strip()
    key = f"epoch {epoch}" if epoch else f"first {first.stamp} {first.text}"
    return "copilot-" + sha256(encode_text(key)).hexdigest()[:_ID_DIGITS]


def _model(key: str) -> str | None:
    """``name|provider`` as ``provider:name``."""
    name, mark, provider = key.strip().rpartition("|")
    return f"{provider}:{name}" if mark else provider or None


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TITLE_LENGTH else f"{line[: _TITLE_LENGTH - 1].rstrip()}…"


def _unique(artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
    """Each artifact once; a text that stood in the message comes before the file of now."""
    found: dict[str, Artifact] = {}
    for artifact in artifacts:
        found.setdefault(artifact.id, artifact)
    return tuple(found.values())
