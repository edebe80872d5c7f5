"""MCP: tools of servers that the user names, started or reached when a runner asks for tools.

Enters: how each server is started or where it is. Leaves: tools with names, words and schemas that are bounded, and
what calls of them gave, in words. May not enter: which servers are trusted; a server's word for what it may do.
"""
