"""Reading a query that is attached: its answer is the text, asked for again whenever a file would be read again."""

from collections.abc import Callable
from dataclasses import dataclass

from lamella.adapters.sources.dataview.answers import QueryAnswer
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Artifact, Source
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import ArtifactError, SourceUnreadableError


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReader:
    """Answers queries by ``ask``, which is given a query and the note that it stands in: the name of what is wanted."""

    ask: Callable[[str, str], QueryAnswer]

    def read(self, wanted: Wanted) -> Artifact:
        if not wanted.query:
            raise ArtifactError(f"A {wanted.kind} attachment has no query.", hint="Give it a `query`.")
        answer = self.ask(wanted.query, wanted.name)
        if answer.refused:
            raise SourceUnreadableError(
                f"The query in {wanted.name} is not answered: {answer.refused}",
                hint="Ask for what docs/sources.md lists, or give the attachment its `text`.",
            )
        source = Source(path=wanted.name, query=wanted.query, via=wanted.via, read=True)
        return make_artifact(wanted.kind, text=answer.text, source=source, title=wanted.title, policy=wanted.policy)
