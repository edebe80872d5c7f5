"""An MCP server made with the SDK, for tests: on standard input and output, or at an address of its own."""

import os
import socket
import sys

from mcp.server.mcpserver import Image, MCPServer
from mcp_types import ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)


def make_server() -> MCPServer:
    server = MCPServer("plain")

    @server.tool(annotations=READS)
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        return str(a + b)

    @server.tool(annotations=READS)
    def draw() -> Image:
        """A picture."""
        return Image(data=b"\x89PNG" + b"0" * 26, format="png")

    @server.tool()
    def shout(times: int) -> str:
        """Much text."""
        return "ho " * times

    @server.tool()
    def die() -> str:
        """End at once."""
        os._exit(3)

    return server


def serve_http() -> None:
    import uvicorn

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(listener.getsockname()[1], flush=True)  # noqa: T201 - whoever started it reads it
        uvicorn.Server(uvicorn.Config(make_server().streamable_http_app(), log_level="error")).run([listener])


if __name__ == "__main__":
    serve_http() if sys.argv[1] == "http" else make_server().run()
