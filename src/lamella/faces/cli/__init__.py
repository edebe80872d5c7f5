"""Command line: a file per command. It parses, calls, prints.

Enters: words on a command line, files. Leaves: text on stdout, errors on stderr, an exit code.
May not enter: decisions about prompts; a traceback, unless ``--debug`` asks for it.
"""

from lamella.faces.cli.app import main

__all__ = ["main"]
