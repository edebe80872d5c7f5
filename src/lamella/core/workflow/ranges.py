"""Ranges: what compaction is told of the stages of a session."""

from collections.abc import Sequence

from lamella.core.compaction.fitting import Rules
from lamella.core.compaction.rules import ChainRules, SummaryRules
from lamella.core.compaction.stages import StageRange
from lamella.core.log.events.stage import WorkflowSpec
from lamella.core.values import replace
from lamella.core.workflow.session import RECENT, WorkflowSession, list_messages

_USUAL = SummaryRules()


def with_stages(rules: Rules, session: WorkflowSession, path: Sequence[str]) -> Rules:
    """The rules of a conversation with the stages that are done on a branch, and with its own way of summaries."""
    stages = build_ranges(session, path)
    after = path[session.since - 1] if session.since else ""

    def stage(chain: ChainRules) -> ChainRules:
        summary = _fit_summary(chain.summary, session.workflow)
        return replace(chain, stages=stages, stage_after=after, summary=summary)

    chains = {name: stage(chain) for name, chain in rules.chains.items()}
    return replace(rules, chain=stage(rules.chain), chains=chains)


def build_ranges(session: WorkflowSession, path: Sequence[str]) -> tuple[StageRange, ...]:
    """The messages of each stage that is done. None of them is of the stage that is worked on."""
    recent = {one.name for one in session.done[-RECENT:]}
    labels = {stage.id: session.workflow.label(stage) for stage in session.workflow.stages}
    return tuple(
        StageRange(stage=one.stage, label=labels[one.stage], first=said[0], last=said[-1], recent=one.name in recent)
        for one in session.done
        if (said := list_messages(one, path))
    )


def _fit_summary(rules: SummaryRules, workflow: WorkflowSpec) -> SummaryRules:
    """How summaries are written: as settings say, and where they say nothing, as the workflow does."""
    form = workflow.summary_form if rules.form == _USUAL.form else ""
    return replace(rules, language=rules.language or workflow.summary_language, form=form or rules.form)
