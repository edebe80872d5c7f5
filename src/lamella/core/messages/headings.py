"""The lines of a request's own that tell its parts from one another."""

# What stands between the instructions and the library in a system message: everything before it is more stable.
LIBRARY_HEADING = "## Context Library\n\n"
# What a project is told of by in L1, before its own words and the names of its files.
PROJECT_OPENING = "The user works on the project "
# What stands between blocks and typed text, so that neither is taken for the other.
QUERY_LABEL = "[User query]:\n"
