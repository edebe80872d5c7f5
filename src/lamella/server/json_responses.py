"""JSON responses that may contain anything a program or a model sent."""

import json
from typing import Any

from fastapi.responses import JSONResponse


class EscapedJSONResponse(JSONResponse):
    """A JSON response in which halves of surrogate pairs, which UTF-8 cannot express, are written as escapes."""

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - any JSON
        """Return the bytes of the body."""
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
