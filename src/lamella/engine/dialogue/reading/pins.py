"""Pins: what the user wants kept whole, artifacts and messages alike, by the names that people give them."""

from collections.abc import Iterable, Mapping

from lamella.core.artifacts.model import Artifact, Policy
from lamella.core.log.receipt import Receipt
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.errors import ArtifactError, CallError


def read_pins(
    asked: Ask, state: State, receipts: Iterable[Receipt] = ()
) -> tuple[tuple[Artifact, ...], tuple[str, ...] | None]:
    """Artifacts to attach once more under their new policy, and the messages that are pinned, none if as before.

    What ``receipts`` take out before this turn is no message of the prompt any more.
    """
    _check_one_wish(asked, state)
    gone = {name for receipt in receipts for step in receipt.steps for name in step.removed}
    messages = {name: said for name, said in name_said(state).items() if said not in gone}
    artifacts: dict[str, Artifact] = {}
    pinned = set(state.pinned if asked.pinned is None else asked.pinned)
    for names, policy in ((asked.pin, Policy.PIN), (asked.unpin, Policy.FOLLOW)):
        for name in names:
            if name in state.library:
                # It may stand by its name alone, or as a summary, since it had no room: pinned, it is to be whole.
                artifacts[name] = replace(state.library[name].artifact, policy=policy, condensed=None)
            elif name in messages:
                (pinned.add if policy is Policy.PIN else pinned.discard)(messages[name])
            elif name in pinned:
                # No message of the prompt any more, and pinned since before that: only letting it go does something.
                pinned -= {name} if policy is Policy.FOLLOW else set()
            else:
                raise _miss(name, policy)
    return tuple(artifacts.values()), None if pinned == state.pinned else tuple(sorted(pinned))


def _check_one_wish(asked: Ask, state: State) -> None:
    """Refuses a turn that would have something stay and go: a pin, or its end, attaches what it names once more."""
    said = name_said(state) if asked.pin and asked.unpin else {}
    wishes = {
        "pin": {said.get(name, name) for name in asked.pin},
        "unpin": {said.get(name, name) for name in asked.unpin},
        "drop": set(asked.drop),
        "detach": set(asked.detach),
    }
    for one, other in (("pin", "unpin"), *((kept, out) for kept in ("pin", "unpin") for out in ("drop", "detach"))):
        both = sorted(wishes[one] & wishes[other])
        if both:
            raise CallError(
                f"{both[0]} is named by {one} and by {other} of the same turn.",
                hint="Ask for one of them now, and for the other with a later question.",
            )


def name_said(state: State) -> Mapping[str, str]:
    """The ids of messages that are sent, each by itself and by the number of its turn."""
    names: dict[str, str] = {}
    for exchange in state.talk.exchanges:
        names[f"turn:{exchange.number + 1}"] = exchange.user.id
        names[f"reply:{exchange.number + 1}"] = exchange.reply.id
        names.update((said.id, said.id) for said in exchange.said)
    return names


def _miss(name: str, policy: Policy) -> ArtifactError:
    done = "pinned" if policy is Policy.PIN else "unpinned"
    return ArtifactError(
        f"{name} cannot be {done}: it is not in the library, and no message of the prompt is called so.",
        hint="Attach an artifact with the policy pin. Name a message by its id, or as turn:3 or reply:3; one that a "
        "compaction took out is back once that is undone.",
    )
