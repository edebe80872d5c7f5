"""Requests and answers in a form that belongs to no API, for clients and upstreams that speak different ones.

Each API has a module that parses requests into a ``NeutralRequest`` and builds requests from one, reads the events of
an answer and writes them. Fields that the other API cannot express are refused with the client's name of the field.
Fields that change nothing in the answer are listed for the note header.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zlib import compress, decompressobj
from zlib import error as ZlibError  # noqa: N812 - the class has no name of its own

from lamella.server.compat.json_spans import decode_json, encode_json
from lamella.server.compat.refusals import RefusedFieldError
from lamella.server.compat.usage import TokenUsage
from lamella.server.compat.wires import ApiFormat

Json = dict[str, Any]
# In front of the name of a reply format of Lamella's providers, where reasoning names the API that made it.
PROVIDER_FORMAT = "provider:"
_CARRIED_PREFIX = "lamella.1."
_MAX_CARRIED_BYTES = 4_194_304


class TextPart(NamedTuple):
    """A text."""

    text: str


class ImagePart(NamedTuple):
    """An image: base64 data with its media type, or an address."""

    media_type: str = ""
    data: str = ""
    url: str = ""


class DocumentPart(NamedTuple):
    """A document: base64 data with its media type, or an address."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    name: str = ""


class ReasoningPart(NamedTuple):
    """Reasoning of the model; ``native`` is the item of the API ``wire`` that made it, with its signature."""

    wire: str | None
    native: Json | None


class CallPart(NamedTuple):
    """A tool call of the model; ``arguments`` is JSON, or any text for a custom tool."""

    id: str
    name: str
    arguments: str


class ResultPart(NamedTuple):
    """The result of a tool call."""

    call_id: str
    parts: "tuple[TextPart | ImagePart | DocumentPart, ...]"
    has_failed: bool = False


Part = TextPart | ImagePart | DocumentPart | ReasoningPart | CallPart | ResultPart


class NeutralMessage(NamedTuple):
    """A message; ``role`` is system, user, assistant or tool, and ``param`` is where the client's request has it."""

    role: str
    parts: tuple[Part, ...]
    param: str = "messages"


class ToolSpec(NamedTuple):
    """A function that the model may call, and the tool of the client that it stands for.

    ``kind`` is ``function``, ``custom`` for a tool that takes a text, or ``tool_search``. ``namespace`` and ``own_name``
    are those of the client.
    """

    name: str
    description: str | None
    schema: Json
    strict: bool | None = None
    kind: str = "function"
    namespace: str | None = None
    own_name: str = ""


class JsonFormat(NamedTuple):
    """The JSON schema of the answer."""

    schema: Json
    name: str | None = None
    strict: bool | None = None
    description: str | None = None


@dataclass(slots=True, kw_only=True)
class NeutralRequest:
    """A request; None means that the client did not say.

    - ``tool_choice``: ``auto``, ``none``, ``required``, or ``tool:`` and a name.
    - ``params``: the client's names of fields that some upstreams do not have.
    - ``unused``: names of fields that are left out and change nothing in the answer.
    """

    wire: ApiFormat
    messages: list[NeutralMessage]
    tools: list[ToolSpec] = field(default_factory=list)
    tool_choice: str | None = None
    parallel_calls: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: list[str] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    effort: str | None = None
    json_format: JsonFormat | None = None
    include_usage: bool = False
    is_streamed: bool = False
    params: dict[str, str] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)

    def unsupported_field_error(self, name: str, upstream: str) -> RefusedFieldError:
        """Return the error for a field that an upstream cannot express."""
        param = self.params.get(name, name)
        return RefusedFieldError(param, f"{param} cannot be translated for {upstream}.")

    def record_ignored_field(self, name: str) -> None:
        """Record a field that is left out."""
        if name not in self.unused:
            self.unused.append(name)

    def record_unused_format_names(self) -> None:
        """Record the fields that only name or describe the schema of the answer, for an API that takes the schema alone."""
        form, param = self.json_format, self.params.get("json_format", "json_format")
        if form is not None:
            said = {
                "name": form.name is not None,
                "strict": form.strict is False,
                "description": bool(form.description),
            }
            for name in (name for name, is_said in said.items() if is_said):
                self.record_ignored_field(f"{param}.{name}")

    def find_tool(self, name: str) -> ToolSpec | None:
        """Return the tool that the model knows by a name."""
        return next((one for one in self.tools if one.name == name), None)


# The events of an answer.


class AnswerStart(NamedTuple):
    """The answer begins; ``id`` is the upstream's id of it."""

    id: str


class AnswerTextDelta(NamedTuple):
    """The next piece of the text."""

    text: str


class RefusalDelta(NamedTuple):
    """The next piece of a refusal."""

    text: str


class AnswerReasoningDelta(NamedTuple):
    """The next piece of the reasoning that the model shows."""

    text: str


class ReasoningEnd(NamedTuple):
    """A block of reasoning ends; ``native`` is the item of the upstream's API, with its signature."""

    wire: str
    native: Json


class CallStart(NamedTuple):
    """A tool call begins."""

    id: str
    name: str


class CallDelta(NamedTuple):
    """The next piece of the arguments of the current call."""

    text: str


class CallEnd(NamedTuple):
    """The current call is complete."""


class AnswerEnd(NamedTuple):
    """The answer is complete; ``stop`` is end, length, tools, sequence, refused or window."""

    stop: str
    usage: TokenUsage
    sequence: str | None = None


AnswerEvent = (
    AnswerStart
    | AnswerTextDelta
    | RefusalDelta
    | AnswerReasoningDelta
    | ReasoningEnd
    | CallStart
    | CallDelta
    | CallEnd
    | AnswerEnd
)


# Signed reasoning of an upstream inside the signature field of the client's API.


def pack_reasoning(wire: str, native: Mapping[str, Any]) -> str:
    """Return reasoning with its signature as one text, which the client sends back unread."""
    return _CARRIED_PREFIX + urlsafe_b64encode(compress(encode_json([wire, native]))).decode()


def unpack_reasoning(signature: object) -> ReasoningPart:
    """Return the reasoning in a packed text; without content if Lamella did not pack it."""
    if not isinstance(signature, str) or not signature.startswith(_CARRIED_PREFIX):
        return ReasoningPart(None, None)
    try:
        unpacking = decompressobj()
        data = unpacking.decompress(urlsafe_b64decode(signature[len(_CARRIED_PREFIX) :]), _MAX_CARRIED_BYTES)
        wire, native = decode_json(data)
        return ReasoningPart(str(wire), native) if isinstance(native, dict) else ReasoningPart(None, None)
    except (Base64Error, ZlibError, ValueError, TypeError, RecursionError):
        return ReasoningPart(None, None)


def pack_reasoning_into_call_id(call_id: str, wire: str, native: Mapping[str, Any]) -> str:
    """Return the id of a call with packed reasoning, for an API that has no field for signatures."""
    return f"{call_id}.{pack_reasoning(wire, native)}"


def split_packed_call_id(call_id: str) -> tuple[str, ReasoningPart | None]:
    """Return the own id of a call, and the reasoning that was attached to it."""
    own, mark, packed = call_id.partition(f".{_CARRIED_PREFIX}")
    return own, unpack_reasoning(_CARRIED_PREFIX + packed) if mark else None


# Reading fields.


def require_type(value: object, kind: type | tuple[type, ...], param: str) -> Any:  # noqa: ANN401 - checked JSON
    """Return a value if it has the type; otherwise raise the error that names the field."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise RefusedFieldError(
            param, f"{param} has the wrong type.", hint="Send it as the API's documentation has it."
        )
    return value


def read_optional(body: Mapping[str, Any], name: str, kind: type | tuple[type, ...], param: str = "") -> Any:  # noqa: ANN401
    """Return a field of an object, or None if it is missing or null."""
    value = body.get(name)
    return None if value is None else require_type(value, kind, param or name)


def is_null_or_empty_container(value: object) -> bool:
    """Return whether a field says nothing: it is null, an empty list or an empty object."""
    return value is None or value in ([], {})


def unsupported_value_error(param: str, value: object) -> RefusedFieldError:
    """Return the error for a value that cannot be translated."""
    return RefusedFieldError(param, f"{str(value)[:60]!r} cannot be translated for this model.")


def list_ignored_fields(body: Mapping[str, Any], known: frozenset[str], *, unused: frozenset[str]) -> list[str]:
    """Return the names of fields that are left out; raises for a field that is neither known nor without effect."""
    found = []
    for name, value in body.items():
        if name in known or is_null_or_empty_container(value):
            continue
        if name not in unused:
            raise RefusedFieldError(name[:100], f"{name[:100]!r} cannot be translated for this model.")
        found.append(name)
    return found


def check_known_fields(
    request: NeutralRequest,
    part: Mapping[str, Any],
    param: str,
    known: tuple[str, ...],
    *,
    unused: tuple[str, ...] = (),
    prefix: str = "",
) -> None:
    """Check the fields of a message, a block or a tool; raises for a field that is neither known nor without effect.

    Fields without effect are listed under their names, with a prefix for those whose name alone says little.
    """
    for name, value in part.items():
        if name in known or is_null_or_empty_container(value):
            continue
        if name not in unused:
            at = f"{param}.{name[:100]}"
            raise RefusedFieldError(at, f"{at} cannot be translated for this model.")
        request.record_ignored_field(f"{prefix}{name}")


def to_json_text(value: object) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_object(text: str) -> Json | None:
    """Return the object that a text is as JSON, or None."""
    try:
        found = decode_json(text.encode("utf-8", "surrogatepass")) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return media type and base64 data of a data URL, or None for any other address."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head[len("data:") : -len(";base64")].partition(";")[0], data
