"""Serving: what the server works with: an engine for each owner over one store, the bounds it keeps, and its tokens.

Enters: settings, a store's address, a vault, a model. Leaves: engines, the book of tokens, what was decided about who
may come in. May not enter: HTTP, the web framework.
"""
