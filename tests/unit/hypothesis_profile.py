"""How properties are tried here: the same examples on every machine, however busy it is."""

from hypothesis import settings

steady = settings(max_examples=100, deadline=None, derandomize=True, database=None)
