"""An error as data, of one shape everywhere."""

from tests.bodies import as_json

from lamella.errors import UsageError
from lamella.schemas.body import error_to_json


def test_error_json_has_code_message_and_worded_hint() -> None:
    error = UsageError("Wrong.", hint="Do right.")
    assert as_json(error_to_json(error)) == {"error": {"code": error.code, "message": "Wrong.", "hint": "Do right."}}
    worded = error_to_json(error, message="", hint="Do ***.")
    assert as_json(worded) == {"error": {"code": error.code, "message": "", "hint": "Do ***."}}
