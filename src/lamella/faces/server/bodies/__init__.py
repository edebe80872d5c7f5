"""Bodies: what answers hold, field by field, as OpenAPI describes them; views make them, and nothing here runs.

Enters: nothing. Leaves: models for the description, which answers are held to by tests. Further fields may always come.
May not enter: logic, values; what clients send, which stands beside the addresses that take it.
"""
