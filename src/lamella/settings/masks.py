"""Masks: what is secret in an address is not shown."""

import re

# A password may hold any character, so everything up to the last @ of an address is taken for one; and what a query
# calls by such a name is one, too.
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^\s]*@")
_SECRET_FIELD = re.compile(r"(?i)([?&][^=&#\s]*(?:password|passwd|key|token|secret)[^=&#\s]*=)[^&#\s]*")


def mask(text: str) -> str:
    """The same without passwords in addresses."""
    return _SECRET_FIELD.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))
