"""Messages: what is said to a model and what it answers, belonging to no provider.

Enters: texts, pictures, calls and what they gave back. Leaves: messages, requests, deltas, replies and usage.
May not enter: provider names and wire formats; those are adapters' business.
"""
