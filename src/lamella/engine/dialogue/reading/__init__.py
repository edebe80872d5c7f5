"""Reading: what is asked becomes a turn, with all that it names, pins, drops and has attached still.

Enters: an ask, and the state that it is asked in. Leaves: the turn. May not enter: rendering, sending, stores.
"""
