"""The HTTP server: Lamella for any program, and for unchanged clients of the OpenAI and Anthropic APIs.

- ``app``, ``serving``: the application, and starting it.
- ``routes``: the routes of ``/v1``; ``compat``: the compatibility endpoints.
- ``turns``: from a request to a run and its response.
- ``security``, ``errors``, ``observability``: access, errors in one format, metrics and traces.
- ``openapi``: JSON responses, and the OpenAPI document.

The package does not import the core and has no logic of its own: ``conversation`` decides what a request does, and
``schemas`` what a body contains.
"""
