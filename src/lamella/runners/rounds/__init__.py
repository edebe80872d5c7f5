"""Rounds: what a runner brings to a turn in which a model calls tools by itself, and how it watches the calls.

Enters: a job, the turn as it was sent last. Leaves: tools to call, and what each call is answered.
May not enter: sending, storing; anything that a turn taken up in another process would not know.
"""
