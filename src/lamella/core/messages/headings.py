"""The two lines of a request's own that tell its parts from one another."""

LIBRARY_HEADING = "## Context Library\n\n"
QUERY_LABEL = "[User query]:\n"
