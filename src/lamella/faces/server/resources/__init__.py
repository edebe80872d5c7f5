"""Resources: a file for each thing that ``/v1`` is about; each has a ``router``, which ``app.py`` lists.

Enters: bodies and parameters, once their types are right, and who calls. Leaves: bodies that views make.
May not enter: logic; what a face needs and the engine does not offer goes into the engine.
"""
