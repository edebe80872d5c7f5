"""Sources: what the numbers in a reply point to, with the passages as they were when it was given."""

from collections.abc import Iterable

from msgspec import Struct

from lamella.core.log.events.artifact import Contents, StoredArtifact
from lamella.core.log.nodes import Told


class ReplySource(Struct, frozen=True, kw_only=True):
    """What ``[^number]`` in a reply points to: a passage, where it stands, and its text as it was sent.

    ``id`` is that of the artifact which has it. There is no ``text`` where that was erased since.
    """

    number: int
    id: str
    title: str
    path: str = ""
    place: str = ""
    text: str | None = None


def list_source_hashes(told: Told) -> list[str]:
    """The contents that the sources of a turn's reply are read from."""
    return [ref.hash for ref in _find_refs(told).values()] if told.sources else []


def read_sources(told: Told, contents: Contents) -> tuple[ReplySource, ...]:
    """The sources of a turn's reply in their order; ``contents`` has their texts."""
    refs = _find_refs(told)
    erased = told.message.erased
    found: list[ReplySource] = []
    for number, cited in enumerate(told.sources, start=1):
        ref = refs.get(cited.id)
        data = None if ref is None or ref.hash in erased else contents.get(ref.hash)
        text = None if data is None else data.decode()
        start, end = cited.span or (0, len(text or ""))
        found.append(
            ReplySource(
                number=number,
                id=cited.id,
                title="" if ref is None else ref.title,
                path="" if ref is None else ref.source.path or "",
                place=cited.place,
                text=None if text is None else text[start:end],
            )
        )
    return tuple(found)


def _find_refs(told: Told) -> dict[str, StoredArtifact]:
    """What came with the question, by id, as far as the reply cites it."""
    cited = {source.id for source in told.sources}
    question = told.message.question
    came: Iterable[StoredArtifact] = () if question is None or not cited else question.artifacts()
    return {str(ref.id): ref for ref in came if ref.id in cited}
