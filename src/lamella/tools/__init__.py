"""Tools that a model may call.

``builtin`` has the built-in tools, ``registry`` lists those that are available, ``schema`` describes and checks their
arguments, and ``mcp`` provides the tools of MCP servers.

Results are text of limited length. Tools make no decisions about prompts, write to a vault only through
``lamella.vault_writer``, and never treat the text of a note, a page or another tool as an instruction.
"""
