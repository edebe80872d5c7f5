"""Build the prompt of each turn from the conversation state, and check the invariants it must satisfy.

- ``state``, ``advance``: the state between two turns, and the step from one turn to the next.
- ``prompt``, ``envelope``: the prompt of a turn, and the checked request.
- ``layers``: the five layers.
- ``replay``: rebuilds a state from stored turns; ``checkpoint`` stores a state.
- ``attachments``, ``attachment_delta``, ``folding``, ``cutting``: where artifacts are, and what changes.
- ``invariants``, ``prefix_change``: checks of every request, and the change since the previous one.

The package uses no store, no clock and no random ids. Every build checks the invariants; a request that breaks one is
an error.
"""
