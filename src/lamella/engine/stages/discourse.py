"""Work in stages as a Python program does it, whatever keeps the conversation."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from lamella.engine.checks import check_text, check_time
from lamella.holdings import WorkflowProgress


class StagedWalker(Protocol):
    """What walks stages: in memory, or into a store."""

    @property
    def progress(self) -> WorkflowProgress | None: ...

    def begin_workflow(self, name: str, *, at: datetime | None = None) -> WorkflowProgress: ...

    def write_stage(self, fields: Mapping[str, object], *, at: datetime | None = None) -> WorkflowProgress: ...

    def submit_stage(self, *, at: datetime | None = None) -> WorkflowProgress: ...

    def approve_stage(self, decision: str = "", *, at: datetime | None = None) -> WorkflowProgress: ...

    def rewind_stage(self, stage: str, *, at: datetime | None = None) -> WorkflowProgress: ...

    def export_work(self, title: str = "") -> str: ...


class StagedDiscourse:
    """What a program does about the stages of a conversation; each gives where the work stands then."""

    _staged: StagedWalker

    def _check_idle(self) -> None:
        """What is in memory sends nothing."""

    @property
    def workflow(self) -> WorkflowProgress | None:
        """Where staged work stands; none where none was begun."""
        return self._staged.progress

    def begin_workflow(self, name: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Begin to work in the stages of a workflow: ``paper``, ``rfc``, one of your own, or a file by its path."""
        self._check_idle()
        return self._staged.begin_workflow(check_text(name, "name", may_be_empty=False), at=check_time(at))

    def write_stage(self, fields: Mapping[str, object], *, at: datetime | None = None) -> WorkflowProgress:
        """Write something down for the current stage, by field; none in place of a value takes a field away."""
        self._check_idle()
        return self._staged.write_stage(fields, at=check_time(at))

    def submit_stage(self, *, at: datetime | None = None) -> WorkflowProgress:
        """Have the current stage wait for approval; an error names the fields that it lacks."""
        self._check_idle()
        return self._staged.submit_stage(at=check_time(at))

    def approve_stage(self, decision: str = "", *, at: datetime | None = None) -> WorkflowProgress:
        """Approve the stage that was submitted; ``decision`` goes into the digest, in at most 200 characters."""
        self._check_idle()
        return self._staged.approve_stage(check_text(decision, "decision"), at=check_time(at))

    def rewind_stage(self, stage: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Go back to an earlier stage; later ones are done again, and what they had is kept."""
        self._check_idle()
        return self._staged.rewind_stage(check_text(stage, "stage"), at=check_time(at))

    def export_work(self, title: str = "") -> str:
        """The work as markdown: every stage that is approved, and a bibliography in which each source stands once."""
        return self._staged.export_work(check_text(title, "title"))
