"""Envelope: one turn's request as a value, with every hash, and the laws it must satisfy.

Enters: built layers and earlier messages. Leaves: a frozen, versioned envelope; what moved since the one before.
May not enter: an envelope that breaks a law. It is checked on every build, in production too.
"""
