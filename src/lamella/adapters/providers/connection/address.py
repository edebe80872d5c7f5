"""Before anything is sent: whether a key and an address can be used at all. No message ever shows a key."""

from urllib.parse import urlsplit

from lamella.errors import AddressError, KeyRefusedError


def check_connection(*, provider: str, key: str, address: str) -> None:
    """Refuses a key that no header can carry and an address that is none; SDKs fail at them in ways of their own."""
    if not key or not all("!" <= character <= "~" for character in key):
        what = "is empty" if not key else "has characters that no key has, such as blanks or line breaks"
        raise KeyRefusedError(f"The key for {provider} {what}.", hint="Set it to exactly what the provider gave you.")
    if not _is_address(address):
        raise AddressError(
            f"{address!a} is not an address for {provider}.",
            hint="Give one that begins with http:// or https:// and has neither blanks nor letters beyond ASCII.",
        )


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    # Letters that look like others, or like nothing, would show one server and lead to another.
    plain = all("!" <= character <= "~" for character in address)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and plain
