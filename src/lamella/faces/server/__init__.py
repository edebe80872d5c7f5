"""Server: the HTTP door, a file per resource.

Enters: requests under /v1. Leaves: JSON and server-sent events. May not enter: decisions; it parses, calls, answers.
"""
