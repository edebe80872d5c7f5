"""MCP: the door for other programs' agents.

Enters: protocol requests. Leaves: resources and tool results. May not enter: decisions.
"""
