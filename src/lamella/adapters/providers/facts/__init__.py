"""Facts: what is known of models, their caches and their prices, each with its date.

Enters: a model's name, a file of the user's own facts. Leaves: profiles, and prices of what was used.
May not enter: guesses; wire formats and connections.
"""
