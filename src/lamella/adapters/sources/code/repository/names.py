"""Names: files that are left out for what they are called, each with why.

What is denied as a secret is documented in docs/code.md; a test holds the two together.
"""

import re
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache

# Files that hold keys, passwords or what opens something. Nothing brings them in: not a question, not a mention.
SECRET_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".htpasswd", ".pgpass", ".my.cnf"),
    *(".git-credentials", ".dockercfg", ".dockerconfigjson", ".boto", ".s3cfg", ".vault-token", ".terraformrc"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.kdb", "*.agekey"),
    *("*.gpg", "*.asc", "*.ovpn", "*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", "*.keytab", "*.pkcs12"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa.*", "id_dsa.*", "id_ecdsa.*", "id_ed25519.*"),
    *("credentials", "credentials.*", "*credentials.json", "client_secret*.json", "service-account*.json"),
    *("service_account*.json", "secret", "secret.*", "secrets", "secrets.*", "kubeconfig", "*.kubeconfig"),
    *("known_hosts", "authorized_keys", "shadow", "master.key", "*_history"),
)
_SECRET_FOLDERS = ".ssh .gnupg .aws .azure .gcloud .kube .docker .password-store .secrets"
SECRET_FOLDERS = tuple(_SECRET_FOLDERS.split())
# Names that only look like one of these: they show what such a file is like, or are source code that reads one.
OPEN_NAMES = (
    *(".env.example", ".env.sample", ".env.template", ".env.dist", "*.env.example", "*.env.sample", "*.pub"),
    *("secret.py", "secrets.py", "secret.go", "secrets.go", "secret.rs", "secrets.rs", "secret.ts", "secrets.ts"),
    *("secret.js", "secrets.js", "secret.java", "secrets.java", "secret.c", "secret.h", "secrets.md", "secret.md"),
    *("credentials.py", "credentials.go", "credentials.rs", "credentials.ts", "credentials.js", "credentials.md"),
)
# fmt: off
_VENDORED = frozenset([
    "node_modules", "bower_components", "jspm_packages", "vendor", "vendored", "_vendor", "third_party", "thirdparty",
    "3rdparty", "site-packages", "dist-packages", ".venv", "venv", "virtualenv", "pods", "carthage", ".yarn",
])
_BUILT = frozenset([
    "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox", ".eggs", ".gradle", ".next", ".nuxt",
    ".svelte-kit", ".parcel-cache", ".turbo", ".terraform", ".hypothesis", "htmlcov", "coverage",
])
# fmt: on
_VERSIONED = frozenset([".git", ".hg", ".svn", ".bzr", "cvs"])
_GENERATED = (
    *("package-lock.json", "npm-shrinkwrap.json", "*.lock", "*-lock.yaml", "go.sum", "*.lockb", "pipfile.lock"),
    *("*_pb2.py", "*_pb2_grpc.py", "*_pb2.pyi", "*.pb.go", "*.pb.cc", "*.pb.h", "*.g.dart", "*.freezed.dart"),
    *("*.designer.cs", "*.snap", "*.map", "*.tsbuildinfo", "*.egg-info"),
)
_MINIFIED = ("*.min.js", "*.min.mjs", "*.min.css", "*-min.js", "*.bundle.js", "*.chunk.js")
_ENDINGS = """
    7z a aac apk avi avif bin bmp bz2 class dat db deb dll dmg doc docx dylib ear egg eot exe flac gguf gif gz ico
    icns img iso jar jpeg jpg lib m4a mkv mo mov mp3 mp4 npy npz o obj ogg onnx otf parquet pdf pickle pkl png ppt
    pptx psd pt pyc pyd pyo rar rlib rpm safetensors so sqlite sqlite3 tar tgz tif tiff ttf wasm wav webm webp whl
    woff woff2 xls xlsx xz zip zst
"""
_BINARY = frozenset(_ENDINGS.split())


def find_fault(path: str) -> str | None:
    """Why a file is left out for its path; none where that says nothing against it."""
    *folders, name = path.lower().split("/")
    return next(_list_faults(name, _judge_folders("/".join(folders))), None)


def _list_faults(name: str, by_folder: str | None) -> Iterator[str]:
    if by_folder is not None:
        yield by_folder
    if _fits(name, SECRET_NAMES) and not _fits(name, OPEN_NAMES):
        yield "files of this name hold secrets"
    if name.rpartition(".")[2] in _BINARY and "." in name:
        yield "it is binary, by its name"
    if _fits(name, _MINIFIED):
        yield "it is minified, by its name"
    if _fits(name, _GENERATED):
        yield "it is generated, by its name"


@lru_cache(maxsize=4_096)
def _judge_folders(folders: str) -> str | None:
    """Why all in a folder is left out; a folder has many files, and is judged once."""
    names = folders.split("/")
    for known, why in (
        (_VERSIONED, "it belongs to a version control system"),
        (frozenset(SECRET_FOLDERS), "files in {name} hold secrets"),
        (_VENDORED, "it is vendored, in {name}"),
        (_BUILT, "it is generated, in {name}"),
    ):
        found = next((name for name in names if name in known), None)
        if found is not None:
            return why.format(name=found)
    return None


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return _join(patterns).match(name) is not None


@lru_cache
def _join(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for all of them: each by itself takes four times as long (2026-11-17)."""
    return re.compile("|".join(map(translate, patterns)))
