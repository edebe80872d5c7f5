"""Providers: what each provider's cache does and charges, and how to speak to it. One folder per wire format.

Enters: a model's name, neutral requests, SDKs' answers. Leaves: profiles, prices, wire requests, deltas, replies.
May not enter: facts without a date or a source; decisions about what a prompt says.
"""
