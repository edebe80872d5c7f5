"""Cache: texts that were fetched or converted, and what failed, so that nothing unchanged is read again.

Enters: a text under what it is known by. Leaves: the same, in any process, until it is the oldest of too many.
May not enter: what decides whether something is fetched; what was sent stands in a conversation's store, not here.
"""
