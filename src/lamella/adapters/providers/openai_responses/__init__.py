"""OpenAI's Responses API.

Enters: neutral requests, the SDK's objects. Leaves: the SDK's arguments, deltas and replies.
May not enter: decisions about what a prompt says; other providers' formats.
"""
