"""Files that are left out for their names."""

import pytest

from lamella.codebase.repository import SECRET_FOLDERS, SECRET_NAMES, excluded_path_reason


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
def test_file_is_excluded_by_name_with_reason(path: str, word: str) -> None:
    assert word in (excluded_path_reason(path) or "")


@pytest.mark.parametrize(
    "path",
    ["src/main.py", ".env.example", "src/secrets.py", "id_rsa.pub", "vendors.py", "src/so", "README", "environment.ts"],
)
def test_similar_name_is_not_excluded(path: str) -> None:
    assert excluded_path_reason(path) is None


def test_every_denied_name_is_denied() -> None:
    shown = [name.replace("*", "x") for name in SECRET_NAMES] + [f"{folder}/x" for folder in SECRET_FOLDERS]
    assert [name for name in shown if "secrets" not in (excluded_path_reason(name) or "")] == []
