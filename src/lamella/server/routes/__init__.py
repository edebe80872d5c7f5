"""The routes of ``/v1``: a module per resource, each with a ``router`` that ``app.py`` lists.

Routes validate parameters and return bodies of ``schemas``. They have no logic: if a route needs something that
``conversation`` does not offer, add it there.
"""
