"""Compaction: reduce a prompt to a token target without losing the originals.

- ``chain``: runs the steps and returns a compaction plan.
- ``steps``, ``summaries``: the steps without and with a model.
- ``summary_checks``: checks of summaries, and the certificate of a compaction.
- ``fitting``: sends a turn as it is, or compacts first so that it fits.
- ``outlines``: shortens attachments of a turn that does not fit on its own.
- ``draft``: the request while steps change it.
- ``rules``: the compaction config and workflow stages.

The package makes no model calls and uses no store. It never shortens pinned artifacts and artifacts that cannot be
read again. Compaction removes messages from the request only; the log keeps them.
"""
