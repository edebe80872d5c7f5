"""Planning: where things stand. One planner per layout; each makes a placement and changes nothing.

Enters: a state, and the turn that is asked in it. Leaves: a placement, with a sentence that says why.
May not enter: rendering, clocks, prices but as values.
"""
