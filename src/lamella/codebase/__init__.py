"""Select files of a repository for a question, fitted to a token budget.

- ``selection``: selects files and decides which appear in full, as a skeleton or by name.
- ``index``: the search index of a repository, and the ranking of files.
- ``repository``: lists and reads the files of a folder, by git's rules.
- ``skeletons``: definitions of a file without their bodies.
- ``attachments``: selections as attachments, and files that clients send as JSON.

The package uses no network and no model, knows no conversations, writes nothing into the repository, and runs no
program that a repository names. The index is in a private file of the user.
"""
