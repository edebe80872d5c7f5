"""Layouts on workloads: what each costs relative to the naive layout, on the same turns and the same simulated caches.

Enters: notes, edits and talk, real where they are beside the checkout and made where they do not. Leaves: ratios.
May not enter: a price, lifetime or seed that the planner could have looked at.
"""
