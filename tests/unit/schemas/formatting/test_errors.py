"""An error as data, of one shape everywhere."""

from lamella.errors import UsageError
from lamella.schemas.formatting import error_to_json


def test_an_error_is_its_code_its_message_and_its_hint_as_a_face_words_them() -> None:
    error = UsageError("Wrong.", hint="Do right.")
    assert error_to_json(error) == {"error": {"code": error.code, "message": "Wrong.", "hint": "Do right."}}
    worded = error_to_json(error, message="", hint="Do ***.")
    assert worded == {"error": {"code": error.code, "message": "", "hint": "Do ***."}}
