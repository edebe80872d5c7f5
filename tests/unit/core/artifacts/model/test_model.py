"""The artifact: names that are stored do not change, and its text is not printed."""

from lamella.core.artifacts.kinds import make_artifact, make_image_data
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource, AttachmentPolicy, TrustLevel
from lamella.core.values import replace


def test_kinds_are_stored_under_names_that_do_not_change() -> None:
    stored = (
        "note active_note url web_tab youtube pdf office canvas code codebase folder tag dataview selected_text "
        "web_selection passage instruction tool image unknown"
    )
    assert [kind.value for kind in ArtifactKind] == stored.split()


def test_trust_and_policy_are_stored_under_names_that_do_not_change() -> None:
    assert [trust.value for trust in TrustLevel] == ["user", "vault", "web", "tool"]
    assert [policy.value for policy in AttachmentPolicy] == ["follow", "snapshot", "pin"]


def test_empty_source_has_no_fields() -> None:
    nothing = ArtifactSource(path=None, url=None, query=None, lines=None, tool=None, arguments=None, via=None)
    assert nothing == ArtifactSource()


def test_repr_omits_artifact_text_and_image_bytes() -> None:
    artifact = make_artifact(ArtifactKind.NOTE, text="secret text", source=ArtifactSource(path="a.md"))
    assert "secret" not in repr(replace(artifact, condensed="secret summary"))
    assert "a.md" in repr(artifact)
    assert "secret" not in repr(make_image_data(b"secret", media_type="image/png", width=1, height=1))
