"""Messages: an envelope as the provider-neutral request that is sent.

Enters: a built envelope. Leaves: messages with text and image parts, in wire order.
May not enter: provider names and wire formats; those are adapters' business.
"""
