"""A site on loopback that answers with raw bytes, as badly as a test wants it to."""

import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.waiting import HANG_SECONDS

_LONGEST = HANG_SECONDS

# What a request asks for, by its path and its headers in lower case, and the bytes that answer it, one after another.
Answering = Callable[[str, Mapping[str, str]], Iterable[bytes]]


class Site:
    """Where a site is, and what it was asked."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.names: list[str | None] = []
        self.ending = threading.Event()

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


def reply(
    body: bytes = b"", *, status: str = "200 OK", kind: str = "text/html", headers: Mapping[str, str] | None = None
) -> list[bytes]:
    """A whole answer."""
    told = {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return [f"HTTP/1.1 {status}\r\n{head}Connection: close\r\n\r\n".encode() + body]


def redirect(to: str) -> list[bytes]:
    return reply(status="302 Found", headers={"Location": to})


def bomb(size: int) -> bytes:
    """So many zeros, packed."""
    return gzip.compress(bytes(size), mtime=0)


@contextmanager
def site(answering: Answering, *, secured: ssl.SSLContext | None = None) -> Iterator[Site]:
    """A site for as long as the block runs."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.02)
    here = Site(server.getsockname()[1])
    if secured is not None:
        secured.sni_callback = lambda _socket, name, _context: here.names.append(name)
    threads: list[threading.Thread] = []

    def accept() -> None:
        while not here.ending.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            thread = threading.Thread(target=_serve, args=(connection, answering, here, secured), daemon=True)
            threads.append(thread)
            thread.start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield here
    finally:
        here.ending.set()
        accepting.join()
        server.close()
        for thread in threads:
            thread.join(_LONGEST)


def _serve(connection: socket.socket, answering: Answering, here: Site, secured: ssl.SSLContext | None) -> None:
    connection.settimeout(_LONGEST)
    with suppress(OSError), connection:
        if secured is not None:
            connection = secured.wrap_socket(connection, server_side=True)
        with connection:
            received = b""
            while b"\r\n\r\n" not in received:
                received += connection.recv(65_536)
            head, *lines = received.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            path = head.split(" ")[1]
            # What was sent and not read makes the system close with a reset, which can overtake the answer.
            while len(received.partition(b"\r\n\r\n")[2]) < int(headers.get("content-length", 0)):
                received += connection.recv(65_536)
            here.asked.append((path, headers))
            for part in answering(path, headers):
                if here.ending.is_set():
                    return
                connection.sendall(part)


def never(here: threading.Event) -> Iterator[bytes]:
    """No byte until the test is over."""
    here.wait(_LONGEST)
    yield b""


def make_trust(folder: Path, host: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server called so shows, and what a client trusts, for an hour."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    written = folder / "certificate.pem"
    written.write_bytes(
        certificate.public_bytes(encoding) + key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    )
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(written)
    return shown, ssl.create_default_context(cafile=str(written))
