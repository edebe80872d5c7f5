"""Words that belong to one interface only: commands and options of the terminal, calls and arguments of Python."""

import re

from lamella.cli.app import COMMANDS
from lamella.cli.chat.slash import SLASH_COMMANDS as SLASH

_SLASH = "|".join(name.removeprefix("/") for name in SLASH)
SHELL = re.compile(
    rf"(?<![\w-])--[a-z][a-z-]+|\blamella (?:{'|'.join(COMMANDS)})\b|(?<![\w/.<])/(?:{_SLASH})\b|command line|terminal"
)
PYTHONIC = re.compile(
    r"(?<![?&\w])(?<!--set )[a-z_]+=[^=]|\{…\}=(?!=)|\b\w+\.\w+\(|\b(?:chat|engine|turn)\.[a-z]+|\b[a-z_]+\(\)"
    r"|`\w+\(|…\]|\b(?:async|await|def|str|datetime|docstring|Python)\b"
)
