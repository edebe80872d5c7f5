"""Facts about models: their abilities, caches and prices, each with a date.

``claude``, ``gemini`` and ``gpt`` have the models of one provider each; ``others`` has all other models and the
prices. Facts are documented by the providers, never guessed. The package contains no wire formats and opens no
connections.
"""
