"""Read and write conversations as files: JSON transcripts and Markdown archives.

``transcript`` reads transcripts, and finds documents that a host pasted into messages; ``attachments`` parses their
attachments. ``markdown`` has archives.

The package does not guess: an unknown field is an error, and a note that cannot be found is a warning.
"""
