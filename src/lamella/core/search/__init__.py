"""Search: originals found again by their words.

Enters: passages of a branch, and a query. Leaves: what fits best, with the place where it stands.
May not enter: stores, models. What was erased is no passage.
"""
