"""Archive: conversations as files that other programs and people read and write.

Enters: transcripts as JSON. Leaves: turns as asked. May not enter: guesses; a field that is not known is an error.
"""
