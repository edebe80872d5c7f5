"""Budget: what a request weighs, and what it may weigh.

Enters: messages, tool definitions, thresholds, and a measure (plain callables that count). Leaves: token counts, or
``budget_exceeded``. May not enter: tokenizers and model names; a measure brings what is known about them.
"""
