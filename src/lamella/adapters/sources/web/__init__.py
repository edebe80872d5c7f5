"""Web: pages and transcripts of videos, fetched from public addresses only, within bounds of size and time.

Enters: an address that somebody attached. Leaves: bytes with what the server says of them, and artifacts made of them.
May not enter: addresses of private networks, unless allowed; proxies, cookies and keys of the environment.
"""
