"""A query that is attached becomes an artifact; one that is not answered is an error with a way out."""

import pytest
from tests.unit.sources.dataview.sample_vault import open_answers

from lamella.core.artifacts.model import ArtifactKind, AttachmentPolicy, UnresolvedAttachment
from lamella.errors import ArtifactError, SourceUnreadableError
from lamella.sources.dataview.blocks import QueryReader
from lamella.sources.dataview.results import QueryAnswer


def ask(query: str, path: str) -> QueryAnswer:
    return open_answers().answer(query, path=path)


def want(query: str | None, *, name: str = "Home.md") -> UnresolvedAttachment:
    return UnresolvedAttachment(
        kind=ArtifactKind.DATAVIEW, name=name, query=query, title="Books", policy=AttachmentPolicy.PIN, via="test"
    )


def test_attached_query_is_read_as_its_result() -> None:
    artifact = QueryReader(answer_query=ask).read(want("LIST FROM #person"))
    assert artifact.text == "1 row\n- [[People/Frank Herbert]]"
    assert artifact.id.startswith("Home.md#dataview:")
    assert (artifact.title, artifact.policy, artifact.recoverable) == ("Books", AttachmentPolicy.PIN, True)
    assert (artifact.source.query, artifact.source.via, artifact.source.is_rereadable) == (
        "LIST FROM #person",
        "test",
        True,
    )


def test_unanswerable_query_is_error_with_reason() -> None:
    with pytest.raises(SourceUnreadableError, match=r"Home\.md is not answered: GROUP BY") as caught:
        QueryReader(answer_query=ask).read(want("LIST GROUP BY a"))
    assert "`text`" in caught.value.hint


@pytest.mark.parametrize("query", [None, ""])
def test_query_without_a_query_is_refused(query: str | None) -> None:
    with pytest.raises(ArtifactError, match="no query"):
        QueryReader(answer_query=ask).read(want(query))
