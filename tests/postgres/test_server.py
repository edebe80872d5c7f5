"""The PostgreSQL server of the tests: real, private, and always stopped afterwards."""

import pwd
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from tests import servers
from tests.contracts.repository import ROOT
from tests.waiting import wait_until

STARTS = """
import os, signal, sys
from tests import servers
server = servers.shared()
print(server.folder, server.pid, flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() if Path("/proc").exists() else _answers_to_ps(pid)


def _answers_to_ps(pid: int) -> bool:
    return subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("end", ["ended", "killed"])
def test_server_ends_with_process_that_started_it(end: str) -> None:
    result = subprocess.run([sys.executable, "-c", STARTS, end], cwd=ROOT, capture_output=True, text=True, check=False)
    folder, pid = result.stdout.split()
    wait_until(lambda: not Path(folder).exists() and not _is_running(int(pid)), "the server is gone with its folder")


def test_server_leaves_no_user_and_listens_on_socket_only() -> None:
    before = pwd.getpwall()
    with servers.running() as server, psycopg.connect(server.url("postgres")) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert server.folder.stat().st_mode & 0o077 == 0
        folder = server.folder
    assert not folder.exists()
    assert pwd.getpwall() == before


def test_programs_are_found_on_this_machine_or_in_the_package() -> None:
    for folder in (servers.find_programs(), servers.find_packaged_programs()):
        assert {"initdb", "postgres"} <= {file.name for file in folder.iterdir()}
