"""Messages of the tree: one event that says something is one node."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from lamella.core.log.events import CARRIES, LAYOUTS, Body
from lamella.core.log.ids import Voice, message_id
from lamella.core.log.terms import CarryForward, Layout
from lamella.errors import StoreDamagedError

# What reading a body that is not what it was can raise.
UNREADABLE = (LookupError, TypeError, ValueError)
_SAID = frozenset({"id", "parent", "text"})
_OWN = _SAID | {"layout", "carry_forward"}


class Node(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """One message of the tree: typed text with its turn's body, or a reply.

    ``number`` is how many events were before the one that said it last: asking the same again after a compaction is
    asking after it. ``rest`` is what its event says besides, none for most; ``erased`` are the contents it names that
    were erased since, and stay so for it when the same content is attached again.
    """

    id: str
    parent: str
    role: Voice
    text: str
    at: str = ""
    number: int = 0
    layout: Layout | None = None
    carry_forward: CarryForward | None = None
    rest: Body | None = None
    erased: tuple[str, ...] = ()

    @property
    def body(self) -> Body:
        """What its event says."""
        own = {"layout": self.layout, "carry_forward": self.carry_forward}
        set_by = {name: value.value for name, value in own.items() if value is not None}
        return {"id": self.id, "parent": self.parent, "text": self.text, **set_by, **(self.rest or {})}


class Told(Struct, frozen=True, kw_only=True, gc=False):
    """One turn of a branch: what was asked, and the reply if there is one."""

    message: Node
    reply: Node | None


def make_node(body: Body, role: Voice, at: str, *, number: int) -> Node:
    """The message that an event's body describes."""
    # What is no such word is read with the rest, where it is found to be damaged.
    layout, carry_forward = body.get("layout"), body.get("carry_forward")
    own = _OWN if layout in tuple(LAYOUTS) and carry_forward in tuple(CARRIES) else _SAID
    return Node(
        id=read_name(body, "id"),
        parent=read_name(body, "parent"),
        role=role,
        text=read_name(body, "text"),
        at=at,
        number=number,
        layout=LAYOUTS[layout] if own is _OWN else None,
        carry_forward=CARRIES[carry_forward] if own is _OWN else None,
        rest={name: value for name, value in body.items() if name not in own} or None,
    )


def name_messages(told: Iterable[Told]) -> tuple[str, ...]:
    """The ids of a branch's questions and replies, in their order."""
    pairs = ((turn.message, turn.reply) for turn in told)
    return tuple(node.id for pair in pairs for node in pair if node is not None)


def derive_id(conversation: str, parent: str, node: Node) -> str:
    """A message's id from what it says and what it follows."""
    rest = node.rest or {}
    refs = [*_refs(rest, "results"), *_refs(rest, "attached")]
    return message_id(conversation, parent=parent, role=node.role, text=node.text, attached=refs)


def read_name(body: Body, field_name: str) -> str:
    """A text of a body."""
    value = body[field_name]
    if not isinstance(value, str):
        raise ValueError(f"{field_name} is not a text")
    return value


def damaged(place: str, error: Exception) -> StoreDamagedError:
    """The error for a place that cannot be read."""
    why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return StoreDamagedError(
        f"{place} cannot be read: {why}.", hint="Run `lamella store verify` to see what is damaged."
    )


def _refs(body: Mapping[str, object], field_name: str) -> list[tuple[str, str]]:
    refs = body.get(field_name, [])
    return [(ref["id"], ref["hash"]) for ref in refs] if isinstance(refs, list) else []
