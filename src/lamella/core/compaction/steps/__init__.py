"""Steps: each looks at a draft and says what it would take out next, or that it has nothing left to take.

Enters: a draft over its goal. Leaves: one cut, or none; all but acknowledgements stop at what the goal asks for.
May not enter: what is protected (L1, the question asked now, the last exchange, pins, text that cannot be fetched
again), and model calls: the summary step takes texts that were fetched before, and says which it needs.
"""

from collections.abc import Callable, Mapping

from lamella.core.compaction.draft import Draft
from lamella.core.compaction.steps.library import cut_to_handles, cut_to_previews
from lamella.core.compaction.steps.messages import cut_chitchat, cut_expendable, cut_replies
from lamella.core.compaction.steps.stages import cut_oldest_stages, cut_recent_stages
from lamella.core.compaction.steps.tools import cut_tool_results
from lamella.core.log.receipt import Step, StepName

STEPS: Mapping[StepName, Callable[[Draft], Step | None]] = {
    StepName.CHITCHAT: cut_chitchat,
    StepName.HANDLE: cut_to_handles,
    StepName.PREVIEW: cut_to_previews,
    StepName.TOOL_RESULTS: cut_tool_results,
    StepName.OLDEST_STAGES: cut_oldest_stages,
    StepName.REPLIES: cut_replies,
    StepName.RECENT_STAGES: cut_recent_stages,
    StepName.EXPENDABLE: cut_expendable,
}
