"""Compatibility endpoints: clients of the OpenAI and Anthropic APIs use a model through Lamella without changes.

The request of a client is the whole conversation. Nothing of an earlier request is ever added to it.

- ``endpoints``, ``service``: the routes, and the way of a request to the upstream and back.
- ``requests``, ``json_spans``, ``documents``, ``identity``, ``records``: what the client sent, and the few changes to it.
- ``neutral``, ``translation``, ``anthropic``, ``openai_chat``, ``openai_responses``, ``model_calls``: other APIs.
- ``upstream``, ``streams``, ``usage``, ``accounting``: connections, streams, and records of what was used.

Enters: requests as programs send them. Leaves: responses in the format of those APIs.
May not enter: stored conversations.
"""
