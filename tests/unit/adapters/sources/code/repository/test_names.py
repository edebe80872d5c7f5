"""Files that are left out for their names."""

from pathlib import Path

import pytest

from lamella.adapters.sources.code.repository.names import SECRET_FOLDERS, SECRET_NAMES, find_fault


@pytest.mark.parametrize(
    ("path", "word"),
    [
        (".env", "secrets"), (".env.production", "secrets"), ("conf/ID_RSA", "secrets"), ("a/server.pem", "secrets"),
        (".ssh/config", "secrets"), ("deploy/credentials.json", "secrets"), ("secrets.yml", "secrets"),
        ("node_modules/a/b.js", "vendored"), ("go/vendor/x/y.go", "vendored"), (".git/config", "version control"),
        ("src/__pycache__/a.txt", "generated"), ("package-lock.json", "generated"), ("api/user_pb2.py", "generated"),
        ("static/app.min.js", "minified"), ("logo.PNG", "binary"), ("lib/x.so", "binary"),
    ],
)  # fmt: skip
def test_a_file_is_left_out_for_its_name_with_why(path: str, word: str) -> None:
    assert word in (find_fault(path) or "")


@pytest.mark.parametrize(
    "path",
    ["src/main.py", ".env.example", "src/secrets.py", "id_rsa.pub", "vendors.py", "src/so", "README", "environment.ts"],
)
def test_what_only_looks_like_one_stays(path: str) -> None:
    assert find_fault(path) is None


def test_every_denied_name_is_denied() -> None:
    shown = [name.replace("*", "x") for name in SECRET_NAMES] + [f"{folder}/x" for folder in SECRET_FOLDERS]
    assert [name for name in shown if "secrets" not in (find_fault(name) or "")] == []


def test_every_denied_name_is_documented() -> None:
    page = (Path(__file__).parents[6] / "docs" / "code.md").read_text("utf-8")
    assert [name for name in (*SECRET_NAMES, *SECRET_FOLDERS) if f"`{name}`" not in page] == []
