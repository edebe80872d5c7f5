"""The visible part of an archive: the messages of the active branch, as people read and edit them.

``render_page`` and ``parse_page`` convert messages, with a ``[Context: …]`` line that names their attachments.
``build_edit_events`` turns edits into events, which are appended to those that the file was written from. They remove
nothing: the previous branch stays in the log, and the edited branch becomes the active one.

``escape_text`` has two rules, and each is reversed exactly. A line that would be read as structure gets one more
backslash in front. A character that editors or line-ending conversion would change, such as a carriage return or a
NUL, becomes a reference such as ``&#13;``. If the text itself has ``&#13;``, its ampersand becomes ``&amp;``.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher

from lamella.archive.markdown.payload import ArtifactRef, EventAppender, iter_artifact_refs
from lamella.core.artifacts.kinds import KINDS, BlockFormat
from lamella.core.log.events.kinds import EventRecord, ForkEvent, SwitchEvent
from lamella.core.log.events.message import QuestionEvent, make_unplaced_question_event
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import MessageAuthor, Turn
from lamella.core.log.turn_records import MessageNode, TurnRecord
from lamella.core.values import replace as replace_edits

_CONTEXT_START, _CONTEXT_END = "[Context: ", "]"
_GROUP_BY_KIND = {kind.value: spec.group for kind, spec in KINDS.items() if spec.block_format is BlockFormat.EXPANDS}
_GROUP_ORDER = tuple(dict.fromkeys(spec.group for spec in KINDS.values()))

# Names that are written without quotes, because they cannot be confused with the separators or with quotes.
_UNQUOTED_NAME = re.compile(r'(?! )[^"\\|,\x00-\x1f\x7f\x85\u2028\u2029]+(?<! )')
_NAME_ITEM = re.compile(r'("(?:[^"\\]|\\.)*"|.*?)(, | \| |$)')
_GROUP_LABEL = re.compile(r"([A-Z][A-Za-z ]*): ")


def render_context_line(refs: Iterable[ArtifactRef]) -> str:
    """Render the context line for the attachments of a message, or an empty string if there are none."""
    named: dict[str, dict[str, None]] = {}
    for ref in refs:
        group, name = _display_name(ref)
        named.setdefault(group, {}).setdefault(name)
    groups = [
        f"{group}: {', '.join(map(_quote_artifact_name, named[group]))}" for group in _GROUP_ORDER if group in named
    ]
    return f"{_CONTEXT_START}{' | '.join(groups)}{_CONTEXT_END}" if groups else ""


def is_context_line(line: str) -> bool:
    """Return whether a line is a context line."""
    return line.startswith(_CONTEXT_START) and line.rstrip().endswith(_CONTEXT_END)


def parse_context_line(line: str) -> dict[str, list[str]]:
    """Return the names in a context line by group. Names outside any group have the empty string as their group."""
    inner = line.rstrip()[len(_CONTEXT_START) : -len(_CONTEXT_END)]
    groups: dict[str, list[str]] = {}
    group, at = "", 0
    while at < len(inner):
        label = _GROUP_LABEL.match(inner, at)
        if label is not None and (at == 0 or inner.endswith(" | ", 0, at)):
            group, at = label[1], label.end()
        found = _NAME_ITEM.match(inner, at)
        if found is None:
            break
        groups.setdefault(group, []).append(_unquote_artifact_name(found[1]))
        at = found.end()
    return groups


def _display_name(ref: ArtifactRef) -> tuple[str, str]:
    """Return the group and the name that people know an attachment by.

    An attachment that came with a folder or tag is shown as that folder or tag.
    """
    source = ref.stored.source
    kind, _, name = (source.via or "").partition(":")
    if kind in _GROUP_BY_KIND and name:
        return _GROUP_BY_KIND[kind], name
    label = source.path or source.url or source.tool or ref.stored.title or ref.id
    if source.lines is not None:
        label = f"{label}#L{source.lines[0]}-L{source.lines[1]}"
    return KINDS[ref.kind].group, label


def _quote_artifact_name(name: str) -> str:
    return name if _UNQUOTED_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _unquote_artifact_name(quoted: str) -> str:
    if not (quoted.startswith('"') and quoted.endswith('"')):
        return quoted
    try:
        name = json.loads(quoted)
    except ValueError:
        return quoted
    return name if isinstance(name, str) else quoted


# Escapes.

_STRUCTURE_MARKS = r"\*\*(?:user|ai)\*\*:|\[Context:|\[Timestamp:|<!-- lamella-context"
_ESCAPE_POSITION = re.compile(rf"^(?=\\*(?:{_STRUCTURE_MARKS}))", re.MULTILINE)
_ESCAPED_POSITION = re.compile(rf"^\\(?=\\*(?:{_STRUCTURE_MARKS}))", re.MULTILINE)

_FRAGILE_CHARS = "\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029"
_FRAGILE_CODE_POINTS = "|".join(str(n) for n in (*range(9), *range(11, 32), 0x7F, 0x85, 0x2028, 0x2029))
_FRAGILE_CHARACTER = re.compile(f"[{_FRAGILE_CHARS}]")
_CHARACTER_REFERENCE = re.compile(f"&((?:amp;)*)#({_FRAGILE_CODE_POINTS});")


def escape_text(text: str) -> str:
    """Escape a text for its place after ``**user**: ``.

    The first line needs no backslash: it follows that prefix and is never read as structure.
    """
    # References that are already in the text come first. Otherwise the references made below would be escaped, too.
    if "#" in text:
        text = _CHARACTER_REFERENCE.sub(r"&amp;\1#\2;", text)
    text = _FRAGILE_CHARACTER.sub(lambda match: f"&#{ord(match[0])};", text)
    first, mark, rest = text.partition("\n")
    return first + mark + _ESCAPE_POSITION.sub(r"\\", rest)


def unescape_text(escaped: str) -> str:
    """Return the original text of an escaped one."""
    first, mark, rest = escaped.partition("\n")
    text = first + mark + _ESCAPED_POSITION.sub("", rest)
    return _CHARACTER_REFERENCE.sub(_decode_character_reference, text) if "#" in text else text


def _decode_character_reference(match: re.Match[str]) -> str:
    ampersands, number = match.groups()
    return f"&{ampersands.removeprefix('amp;')}#{number};" if ampersands else chr(int(number))


# Times, to the second and in UTC.

_TIME_FORMAT = "%Y/%m/%d %H:%M:%S"
UNKNOWN_TIME = "unknown"


def format_archive_time(at: str) -> str:
    """Format an event's time for people. Text that is not a time is shown as ``unknown``."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return UNKNOWN_TIME
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # Not strftime: on some systems it writes years before 1000 with fewer than four digits.
    day = moment.astimezone(UTC)
    return f"{day.year:04}/{day.month:02}/{day.day:02} {day.hour:02}:{day.minute:02}:{day.second:02}"


def parse_archive_time(text: str) -> str | None:
    """Parse a time that an archive shows, as UTC. Return None if the text is not such a time."""
    if not text:
        return None
    try:
        moment = datetime.strptime(text.strip(), _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return format_event_time(moment)


def parse_epoch_milliseconds(milliseconds: str) -> str | None:
    """Convert milliseconds since 1970, given as text, to a time. Return None if the text is not such a number."""
    try:
        moment = datetime.fromtimestamp(int(float(milliseconds)) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return format_event_time(moment)


def format_event_time(moment: datetime) -> str:
    """Format a time in UTC as events store it."""
    return moment.isoformat().replace("+00:00", "Z")


# Messages.

_SPEAKERS = {MessageAuthor.USER: "user", MessageAuthor.REPLY: "ai"}
_ROLES = {speaker: role for role, speaker in _SPEAKERS.items()}
_SPEAKER_LINE = re.compile(r"^\*\*(user|ai)\*\*:(?: |$)", re.MULTILINE)
_TIMESTAMP_LINE = re.compile(r"\[Timestamp: (.*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleMessage:
    """One message as a file shows it: its text, its context line and its time, each as written in the file."""

    role: MessageAuthor
    text: str
    context: str = ""
    stamp: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePair:
    """A question and its reply, if there is one."""

    user: VisibleMessage
    reply: VisibleMessage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisiblePage:
    """The messages that a file shows, and the text before the first message, which belongs to no message."""

    messages: tuple[VisibleMessage, ...]
    preface: str


def list_visible_messages(log: FoldedLog) -> tuple[VisibleMessage, ...]:
    """Return the messages of the active branch, with each question as the user typed it."""
    return tuple(message for record in log.branch_records() for message in _turn_to_visible_messages(record))


def typed_text(node: MessageNode) -> str:
    """Return a message as the user typed it, before templates were applied."""
    return node.typed


def _turn_to_visible_messages(record: TurnRecord) -> list[VisibleMessage]:
    question = VisibleMessage(
        role=MessageAuthor.USER,
        text=typed_text(record.message),
        context=render_context_line(iter_artifact_refs(record.message.question_event))
        if record.message.question_event
        else "",
        stamp=format_archive_time(record.message.at),
    )
    if record.reply is None:
        return [question]
    return [
        question,
        VisibleMessage(role=MessageAuthor.REPLY, text=record.reply.text, stamp=format_archive_time(record.reply.at)),
    ]


def render_page(messages: Iterable[VisibleMessage]) -> str:
    """Render messages as text, each followed by its context line, its time and a blank line."""
    return "".join(_render_message(message) for message in messages)


def _render_message(message: VisibleMessage) -> str:
    context = f"{message.context}\n" if message.context else ""
    text = escape_text(message.text)
    return f"**{_SPEAKERS[message.role]}**: {text}\n{context}[Timestamp: {message.stamp}]\n\n"


def parse_page(text: str, *, escaped: bool = True) -> VisiblePage:
    """Parse the messages that a text shows.

    If ``escaped`` is false, another program wrote the text, and blank lines around a message are not part of it.
    """
    starts = list(_SPEAKER_LINE.finditer(text))
    ends = [*(start.start() for start in starts), len(text)][1:]
    messages = [
        _parse_message(_ROLES[start[1]], text[start.end() : end], escaped=escaped)
        for start, end in zip(starts, ends, strict=True)
    ]
    preface = text[: starts[0].start()] if starts else text
    return VisiblePage(messages=tuple(messages), preface=preface.strip())


def _parse_message(role: MessageAuthor, block: str, *, escaped: bool) -> VisibleMessage:
    lines = block.split("\n")
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    stamp = _TIMESTAMP_LINE.fullmatch(lines[-1].rstrip()) if len(lines) > 1 else None
    if stamp is not None:
        lines.pop()
    has_context = role is MessageAuthor.USER and len(lines) > 1 and is_context_line(lines[-1])
    context = lines.pop().rstrip() if has_context else ""
    text = "\n".join(lines)
    return VisibleMessage(
        role=role,
        text=unescape_text(text) if escaped else text.strip(),
        context=context,
        stamp=stamp[1] if stamp else "",
    )


def pair_messages(messages: Sequence[VisibleMessage]) -> tuple[list[MessagePair], list[str]]:
    """Group messages into questions with their replies, and return them with warnings.

    Every question starts a turn. Several replies in a row are joined to one. A reply without a question gets an empty
    one.
    """
    turns: list[tuple[VisibleMessage, list[VisibleMessage]]] = []
    warnings: list[str] = []
    for number, message in enumerate(messages, start=1):
        if message.role is MessageAuthor.USER:
            turns.append((message, []))
            continue
        if not turns:
            warnings.append("The file begins with an answer; it stands after an empty question.")
            turns.append((VisibleMessage(role=MessageAuthor.USER, text="", stamp=message.stamp), []))
        if turns[-1][1]:
            warnings.append(f"Message {number} follows another answer; the two are one answer now.")
        turns[-1][1].append(message)
    pairs = [MessagePair(user=user, reply=_join_answers(answers)) for user, answers in turns]
    return pairs, warnings


def _join_answers(answers: Sequence[VisibleMessage]) -> VisibleMessage | None:
    if len(answers) < 2:
        return answers[0] if answers else None
    return replace(answers[0], text="\n\n".join(answer.text for answer in answers))


def is_same_text_ignoring_blanks(first: str, second: str) -> bool:
    """Return whether two texts differ at most in blanks that editors remove: at line ends, and around the text."""
    return first == second or _strip_blanks(first) == _strip_blanks(second)


def _strip_blanks(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


# Edits.

# The most pairs of questions that are compared exactly, counted between the first and the last question that differ.
# Above this limit only questions that occur exactly once on both sides are matched, because an exact comparison would
# take far longer than reading the file.
_MAX_COMPARISONS = 1_000_000


def build_edit_events(log: FoldedLog, page: VisiblePage) -> tuple[tuple[EventRecord, ...], tuple[str, ...]]:
    """Return the events that turn the log's messages into those of the page, and warnings.

    There are no events if both show the same. A message keeps its attachments if it can be matched to an old message,
    by its text or otherwise by its position.
    """
    warnings = _ignored_edit_warnings(log, page)
    pairs, paired = pair_messages(page.messages)
    records = log.branch_records()
    first = next(
        (i for i, (old, new) in enumerate(zip(records, pairs, strict=False)) if not _is_same_turn(old, new)), None
    )
    if first is None and len(records) == len(pairs):
        return (), tuple(warnings)
    warnings += [
        "The messages were edited by hand; the file's text is used, and the branch as it was is kept beside it.",
        *paired,
    ]
    start = min(len(records), len(pairs)) if first is None else first
    editor = _EditImporter(EventAppender(log=log), records, matched=_match_turns(records, pairs), warnings=warnings)
    editor.append_turns(pairs, start)
    return tuple(editor.appender.records), tuple(warnings)


def _ignored_edit_warnings(log: FoldedLog, page: VisiblePage) -> list[str]:
    """Return a warning for each edit of a context line or a timestamp, which has no effect."""
    warnings = []
    for number, (old, new) in enumerate(zip(list_visible_messages(log), page.messages, strict=False), start=1):
        same = old.role is new.role and is_same_text_ignoring_blanks(old.text, new.text)
        if same and (old.context.rstrip(), old.stamp) != (new.context, new.stamp):
            warnings.append(f"The context or time of message {number} was changed by hand; that changes nothing.")
    return warnings


def _is_same_turn(record: TurnRecord, pair: MessagePair) -> bool:
    return is_same_text_ignoring_blanks(typed_text(record.message), pair.user.text) and _is_same_reply(
        record.reply, pair.reply
    )


def _is_same_reply(node: MessageNode | None, message: VisibleMessage | None) -> bool:
    return is_same_text_ignoring_blanks(node.text if node else "", message.text if message else "")


def _match_turns(records: Sequence[TurnRecord], pairs: Sequence[MessagePair]) -> dict[int, TurnRecord]:
    """Map each turn of the file, by index, to the turn record it was.

    Turns with the same question match. Between them, turns at the same position match.
    """
    old = [typed_text(turn.message).strip() for turn in records]
    new = [pair.user.text.strip() for pair in pairs]
    # Most files are edited in one place. The common beginning and end are matched in linear time, and only the turns
    # between them are compared in quadratic time.
    first = _count_equal_texts_at_start(old, new)
    last = _count_equal_texts_at_start(old[first:][::-1], new[first:][::-1])
    positions = {at: at for at in range(first)} | {len(new) - at: len(old) - at for at in range(1, last + 1)}
    middle, edited = old[first : len(old) - last], new[first : len(new) - last]
    compare = _match_texts if len(middle) * len(edited) <= _MAX_COMPARISONS else _match_unique_texts
    positions |= {first + new_at: first + old_at for new_at, old_at in compare(middle, edited).items()}
    return {new_at: records[old_at] for new_at, old_at in positions.items()}


def _count_equal_texts_at_start(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the texts that two lists have in common at their beginning."""
    pairs = zip(first, second, strict=False)
    return next((at for at, (this, that) in enumerate(pairs) if this != that), min(len(first), len(second)))


def _match_texts(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    matched: dict[int, int] = {}
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("equal", "replace"):
            matched.update(zip(range(j1, j2), range(i1, i2), strict=False))
    return matched


def _match_unique_texts(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Match the texts that occur exactly once in both lists."""
    counts = Counter(old), Counter(new)
    positions = {text: at for at, text in enumerate(old) if counts[0][text] == counts[1][text] == 1}
    return {at: positions[text] for at, text in enumerate(new) if text in positions}


class _EditImporter:
    """Appends the turns of a file that are not in the log."""

    def __init__(
        self,
        appender: EventAppender,
        records: Sequence[TurnRecord],
        *,
        matched: Mapping[int, TurnRecord],
        warnings: list[str],
    ) -> None:
        self.appender = appender
        self._records = records
        self._matched = matched
        self._warnings = warnings
        self._get_last_event_time = _get_last_event_time(appender.log, records)

    def append_turns(self, pairs: Sequence[MessagePair], start: int) -> None:
        """Append the turns from ``start`` on, the first turn that differs from the log."""
        if start == len(pairs):
            self._truncate_branch(start)
            return
        old = self._records[start] if start < len(self._records) else None
        if old is not None and is_same_text_ignoring_blanks(typed_text(old.message), pairs[start].user.text):
            self._append_alternative_reply(old, pairs[start])
        else:
            self._append_question(start, pairs[start], edited_message=old.message if old else None)
        for index in range(start + 1, len(pairs)):
            self._append_question(index, pairs[index])

    def _truncate_branch(self, start: int) -> None:
        """Make the branch end before turn ``start``, because the file ends there."""
        last = self._records[start - 1] if start else None
        head = "" if last is None else (last.reply or last.message).id
        self.appender.append_branch_switch(ForkEvent(head=head), at=self._get_last_event_time)

    def _append_alternative_reply(self, old: TurnRecord, pair: MessagePair) -> None:
        """Append another reply to a question that is unchanged."""
        if self.appender.log.head != old.message.id:
            self.appender.append_branch_switch(SwitchEvent(head=old.message.id), at=self._get_last_event_time)
        self._append_reply(pair, old)

    def _append_question(
        self, turn_index: int, pair: MessagePair, *, edited_message: MessageNode | None = None
    ) -> None:
        old = self._matched.get(turn_index)
        node = old.message if old else None
        self.appender.append_question(
            self._build_question(turn_index, pair.user, node),
            at=self._message_time(pair.user, node),
            edited_message=edited_message,
        )
        self._append_reply(pair, old)

    def _append_reply(self, pair: MessagePair, old: TurnRecord | None) -> None:
        if pair.reply is None:
            return
        node = old.reply if old else None
        # An unchanged reply keeps the stored text and tool rounds: an editor may have removed blanks in the file.
        same = node is not None and _is_same_reply(node, pair.reply)
        text = node.text if node is not None and same else pair.reply.text
        rounds = node.rounds if node is not None and same else ()
        self.appender.append_reply(text, at=self._message_time(pair.reply, node), rounds=rounds)

    def _build_question(self, turn_index: int, message: VisibleMessage, node: MessageNode | None) -> QuestionEvent:
        """Build the message event of a question, with the context of the stored message it was matched to, if any."""
        if node is not None and node.question_event is not None:
            same = is_same_text_ignoring_blanks(typed_text(node), message.text)
            return node.question_event if same else replace_edits(node.question_event, text=message.text, typed=None)
        if message.context:
            names = ", ".join(name for group in parse_context_line(message.context).values() for name in group)
            self._warnings.append(f"Turn {turn_index + 1} is new in the file; its context is not attached: {names}.")
        return make_unplaced_question_event(Turn(text=message.text, typed=message.text))

    def _message_time(self, message: VisibleMessage, node: MessageNode | None) -> str:
        """Return the time of a message: the stored one, unless the file shows another.

        The file shows only seconds, so the stored time is more exact. If the file shows no readable time, the message
        gets the time of the message before it.
        """
        if node is not None and format_archive_time(node.at) == message.stamp:
            self._get_last_event_time = node.at
        else:
            self._get_last_event_time = parse_archive_time(message.stamp) or self._get_last_event_time
        return self._get_last_event_time


def _get_last_event_time(log: FoldedLog, records: Sequence[TurnRecord]) -> str:
    return max([log.created, *((turn.reply or turn.message).at for turn in records)])
