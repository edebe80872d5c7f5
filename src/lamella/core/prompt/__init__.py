"""Prompt: from a state and a turn to what a model is sent, and the laws it must satisfy.

Enters: one turn at a time, and its reply. Leaves: envelopes, what moved since the one before, and the next state.
May not enter: stores, clocks, random ids; an envelope that breaks a law, which is checked on every build.
"""
