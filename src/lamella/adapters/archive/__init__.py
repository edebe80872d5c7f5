"""Archive: conversations as files that other programs and people read and write.

Enters: transcripts as JSON, and whole conversations as markdown. Leaves: turns as asked, and chronicles.
May not enter: guesses; a field that is not known is an error, and a note that is not there a warning.
"""
