"""An agent for editors that speak the Agent Client Protocol (ACP), such as Zed and plugins for Obsidian.

- ``agent``: the methods of the protocol, and the engines of the folders that editors open.
- ``session``: one conversation of an editor: its turns, its permissions and its updates.
- ``content``: from the content blocks of a prompt to a question and its attachments.
- ``tools``: MCP servers of the editor, and permission for their tools.
- ``updates``: from the events of a turn to session updates.

A session is an ordinary conversation of the store. Its folder is the vault. Nothing but the protocol is written to
stdout.
"""
