"""The server: any program uses the engine over HTTP, and clients that exist use it unchanged.

Enters: requests over HTTP, tokens. Leaves: the bodies that views make, events as they come, one shape of error.
May not enter: logic of its own; what a request means is the engine's, what a body holds is the views'. The core.
"""
