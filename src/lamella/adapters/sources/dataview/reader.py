"""Reading a query that is attached: its answer is the text, asked for again whenever a file would be read again."""

from pathlib import PurePosixPath

from lamella.adapters.sources.dataview.answers import QueryDesk
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Artifact, Source
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import ArtifactError, SourceUnreadableError


class QueryReader:
    """Answers queries over the notes of a vault; the name of what is wanted is the note that the query stands in."""

    def __init__(self, desk: QueryDesk) -> None:
        self._desk = desk

    def read(self, wanted: Wanted) -> Artifact:
        if not wanted.query:
            raise ArtifactError(f"A {wanted.kind} attachment has no query.", hint="Give it a `query`.")
        answer = self._desk.answer(wanted.query, path=PurePosixPath(wanted.name).as_posix())
        if answer.refused:
            raise SourceUnreadableError(
                f"The query in {wanted.name} is not answered: {answer.refused}",
                hint="Ask for what docs/sources.md lists, or give the attachment its `text`.",
            )
        source = Source(path=wanted.name, query=wanted.query, via=wanted.via, read=True)
        return make_artifact(wanted.kind, text=answer.text, source=source, title=wanted.title, policy=wanted.policy)
