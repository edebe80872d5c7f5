"""Search: originals found again by their words, and texts in the order in which they speak of a question.

Enters: passages of a branch or texts, and a query. Leaves: what fits best, with the place where it stands.
May not enter: stores, models. What was erased is no passage.
"""
