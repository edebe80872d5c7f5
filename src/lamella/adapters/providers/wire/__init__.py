"""Wire: what the wire formats share, whoever speaks them.

Enters: neutral requests, plain data that came over a wire. Leaves: parts of bodies, breakpoints, fields and usage.
May not enter: I/O; what only one provider says.
"""
