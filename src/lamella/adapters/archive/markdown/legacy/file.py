"""Archives of Obsidian Copilot, and any file of ``**user**: `` and ``**ai**: `` messages: read as conversations.

Their context is notes by name, without a text: each is read as it is now. Where older exports have the text itself in
the message, that text is taken.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from lamella.adapters.archive.markdown.front import Front
from lamella.adapters.archive.markdown.legacy.blocks import Extract, UnparsedBlock, extract_blocks
from lamella.adapters.archive.markdown.legacy.context import ContextReader
from lamella.adapters.archive.markdown.legacy.marks import take_out_marks
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
from lamella.core.text.words import make_title
from lamella.errors import BadInputError
from lamella.holdings import Chronicle
from lamella.ports import Sources

_NEVER = "1970-01-01T00:00:00Z"
_ID_DIGITS = 16
_SOURCE_LENGTH = 80
# Many times what anybody has said in one chat. A message costs more time than its letters do.
_MOST_MESSAGES = 20_000
_SHOWN = 5
_logger = logging.getLogger(__name__)


def parse_legacy(front: Front, body: str, sources: Sources | None) -> Chronicle:
    """The conversation in a file that is not an archive of Lamella."""
    page = parse_page(body, escaped=False)
    if not page.messages and body.lstrip().startswith(("{", "[")):
        raise BadInputError(
            "The file is JSON; archives are markdown.",
            hint=lambda door: (
                f"A transcript is replayed ({door.replay_file()}), not imported. To move conversations, export them as "
                "archives, or copy the store; docs/coming-from.md shows how a list of messages is taken over."
            ),
        )
    if not page.messages:
        raise BadInputError(
            "The file has no line that begins with `**user**: ` or `**ai**: `; it is no archive of a conversation.",
            hint="docs/archive.md shows the formats that can be imported.",
        )
    if len(page.messages) > _MOST_MESSAGES:
        raise BadInputError(
            f"The file has {len(page.messages):,} messages; at most {_MOST_MESSAGES:,} are read from one.",
            hint="Split it into several files, each with front matter of its own.",
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
        self._first = first, extract_blocks(first.text)
        self._title = fields.get("topic", "").strip() or make_title(self._first[1].typed)
        self._contents: dict[str, bytes] = {}
        self._number = 0
        self._scribe = Scribe(log=Log(conversation=derive_conversation(fields, first)))
        if self._title:
            self._scribe.rename(self._title, at=self._created)

    def read(self, pair: MessagePair) -> None:
        """One turn: its question with what was attached to it, and its answer."""
        self._number += 1
        first, extract = self._first
        asked = extract if pair.user is first else extract_blocks(pair.user.text)
        self._tell_blocks(asked, self._number, "its attachments")
        recalled = self._context.read(pair.user.context, number=self._number) if pair.user.context else ()
        said = self._read_answer(pair.reply.text) if pair.reply is not None else _SILENCE
        attached = _unique((*asked.artifacts, *recalled, *said.artifacts))
        turn = Turn(text=asked.typed, typed=asked.typed, attached=attached, model=self._model)
        self._model = None
        self._contents.update(gather_contents(attached))
        self._scribe.ask(make_open_message(turn), at=self._time(pair.user))
        if pair.reply is not None:
            self._number += 1
            self._scribe.reply(said.typed, at=self._time(pair.reply))

    def _read_answer(self, text: str) -> Extract:
        """An answer as it was said; what stood in it as blocks goes to its question."""
        number = self._number + 1
        answer, marks = take_out_marks(text)
        if marks:
            sorts = " and ".join(_tell_count(count, what) for what, count in marks.items())
            are = "is" if marks.total() == 1 else "are"
            self._warnings.append(f"Message {number}: {sorts} of the other program {are} left out.")
        said = extract_blocks(answer, is_answer=True)
        self._tell_blocks(said, number, "the attachments of its question")
        return said

    def _tell_blocks(self, found: Extract, number: int, become: str) -> None:
        if found.artifacts:
            blocks = _tell_count(len(found.artifacts), "context block")
            self._warnings.append(f"Message {number}: moved from its text to {become}: {blocks}.")
        if found.unparsed:
            blocks = _tell_count(len(found.unparsed), "block")
            told = f"{blocks} could not be read and {'is' if len(found.unparsed) == 1 else 'are'} kept verbatim"
            self._warnings.append(f"Message {number}: {told}: {_name_blocks(found.unparsed)}.")
        for block in found.unparsed:
            # Never its text: logs are passed on.
            size, name = len(block.artifact.text), block.artifact.hash
            _logger.debug("unparsed block in message %d: tag %s, %d characters, %s", number, block.tag, size, name)

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


_SILENCE = Extract(typed="", artifacts=())


def _tell_count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _name_blocks(blocks: Sequence[UnparsedBlock]) -> str:
    """Blocks by tag and source, each once with how often it is there."""
    counted = Counter((block.tag, block.source[:_SOURCE_LENGTH]) for block in blocks)
    shown = [
        f"<{tag}>" + (f" of {source}" if source else "") + (f" {count:,} times" if count > 1 else "")
        for (tag, source), count in counted.most_common(_SHOWN)
    ]
    return ", ".join(shown) + (f" and {len(counted) - _SHOWN:,} more" if len(counted) > _SHOWN else "")


def derive_conversation(fields: Mapping[str, str], first: ShownMessage) -> str:
    """An id that the same conversation has each time it is imported: from its beginning, which later turns leave."""
    epoch = fields.get("epoch", "").strip()
    key = f"epoch {epoch}" if epoch else f"first {first.stamp} {first.text}"
    return "copilot-" + sha256(encode_text(key)).hexdigest()[:_ID_DIGITS]


def _model(key: str) -> str | None:
    """``name|provider`` as ``provider:name``."""
    name, mark, provider = key.strip().rpartition("|")
    return f"{provider}:{name}" if mark else provider or None


def _unique(artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
    """Each artifact once; a text that stood in the message comes before the file of now."""
    found: dict[str, Artifact] = {}
    for artifact in artifacts:
        found.setdefault(artifact.id, artifact)
    return tuple(found.values())
