"""Layout planning: where each artifact goes in the next request, with one planner per layout mode.

``layouts`` chooses the plan of a turn, and ``costs`` finds the cheapest one for the mode ``auto``. Planners change
nothing, render nothing and use no clock; prices are passed in as values. Every plan has a sentence that explains it.
"""
