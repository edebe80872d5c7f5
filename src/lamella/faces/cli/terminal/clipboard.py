"""The clipboard of whoever sits at the terminal, wherever this runs: terminals take it by an escape code (OSC 52)."""

import os
import sys
from base64 import b64encode

from lamella.faces.cli.terminal.telling import can_redraw

# More than this some terminals cut off or leave out: xterm takes 100,000 bytes with the code around it.
LONGEST = 74_994
# Those that are known to show nothing and take nothing.
_DEAF_KINDS = ("linux", "vt100", "vt220")
_DEAF_PROGRAMS = ("Apple_Terminal",)


def takes_clipboard() -> bool:
    """Whether the terminal may take a clipboard from programs; most do, and none says so."""
    if not can_redraw(sys.stdout):
        return False
    return os.environ.get("TERM", "") not in _DEAF_KINDS and os.environ.get("TERM_PROGRAM", "") not in _DEAF_PROGRAMS


def send_clipboard(text: str) -> None:
    """Have the terminal put a text on the clipboard. It is encoded: nothing of it can act on the terminal."""
    code = b64encode(text.encode(errors="replace")).decode()
    sys.stdout.write(f"\x1b]52;c;{code}\x07")
    sys.stdout.flush()
