"""Google's Gemini API.

Enters: neutral requests, the SDK's objects. Leaves: the SDK's arguments, deltas and replies; caches made and deleted.
May not enter: decisions about what a prompt says; other providers' formats.
"""
