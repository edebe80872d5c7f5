"""Find text that looks like a secret, such as an API key.

``SecretFinder`` scans a text of any size: it finds the letters that start a secret, then checks the text around them.
``SecretFormat`` is one kind of secret, and ``secret_matcher`` confirms it offline.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFormat:
    """A kind of secret: its name, the letters that it must contain, and the check for a short text.

    ``detector`` is a class of the package ``detect_secrets``. It is imported only after an anchor was found, because
    the import takes as long as ten bare Python starts (270 ms, 2026-11-17) and most texts contain no anchor.
    ``pattern`` is Lamella's own regular expression, for kinds without a detector.
    """

    description: str
    anchors: tuple[str, ...]
    detector: tuple[str, str] | None = None
    pattern: str = ""


# Kinds without typical letters are left out: detection by length or randomness is wrong too often
# (docs/decisions/secret-detection.md).
SECRET_FORMATS = (
    SecretFormat(
        description="an AWS access key", anchors=("AKIA", "ASIA", "ABIA", "ACCA"), detector=("aws", "AWSKeyDetector")
    ),
    SecretFormat(description="an Artifactory token", anchors=("AKC",), detector=("artifactory", "ArtifactoryDetector")),
    SecretFormat(
        description="an Azure storage key",
        anchors=("AccountKey=",),
        detector=("azure_storage_key", "AzureStorageKeyDetector"),
    ),
    SecretFormat(
        description="a GitHub token",
        anchors=("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        detector=("github_token", "GitHubTokenDetector"),
    ),
    SecretFormat(
        description="a GitLab token",
        anchors=("glpat-", "gldt-", "glft-", "glsoat-", "glrt-"),
        detector=("gitlab_token", "GitLabTokenDetector"),
    ),
    SecretFormat(description="a JSON Web Token", anchors=("eyJ",), detector=("jwt", "JwtTokenDetector")),
    SecretFormat(description="an npm token", anchors=("_authToken=",), detector=("npm", "NpmDetector")),
    SecretFormat(description="an OpenAI key", anchors=("T3BlbkFJ",), detector=("openai", "OpenAIDetector")),
    SecretFormat(
        description="a private key",
        anchors=("PRIVATE KEY", "PuTTY-User-Key-File"),
        detector=("private_key", "PrivateKeyDetector"),
    ),
    SecretFormat(description="a PyPI token", anchors=("pypi-AgE",), detector=("pypi_token", "PypiTokenDetector")),
    SecretFormat(description="a SendGrid key", anchors=("SG.",), detector=("sendgrid", "SendGridDetector")),
    SecretFormat(description="a Slack token", anchors=("xox", "hooks.slack.com"), detector=("slack", "SlackDetector")),
    SecretFormat(description="a Square token", anchors=("sq0csp-",), detector=("square_oauth", "SquareOAuthDetector")),
    SecretFormat(description="a Stripe key", anchors=("k_live_",), detector=("stripe", "StripeDetector")),
    # Model providers and others that the package does not know yet, with their formats as of 2026-11.
    SecretFormat(description="an Anthropic key", anchors=("sk-ant-",), pattern=r"sk-ant-[a-z0-9]+-[A-Za-z0-9_-]{40,}"),
    SecretFormat(
        description="an OpenAI key", anchors=("sk-proj-", "sk-svcacct-"), pattern=r"sk-(?:proj|svcacct)-[\w-]{40,}"
    ),
    SecretFormat(description="a Google API key", anchors=("AIza",), pattern=r"AIza[0-9A-Za-z_-]{35}(?![\w-])"),
    SecretFormat(description="a Hugging Face token", anchors=("hf_",), pattern=r"(?<!\w)hf_[A-Za-z0-9]{34}(?!\w)"),
    SecretFormat(description="a GitHub token", anchors=("github_pat_",), pattern=r"github_pat_[A-Za-z0-9_]{60,}"),
)
ANCHORS: tuple[str, ...] = tuple(dict.fromkeys(anchor for one in SECRET_FORMATS for anchor in one.anchors))


@cache
def secret_matcher(secret_format: SecretFormat) -> Callable[[str], bool]:
    """Return a function that checks whether a short text contains a secret of this kind. It works offline."""
    if secret_format.detector is None:
        pattern = re.compile(secret_format.pattern)
        return lambda text: pattern.search(text) is not None
    module, name = secret_format.detector
    detector = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
    return lambda text: any(True for _ in detector.analyze_string(text))


# How many characters around an anchor are checked. No token is longer, except a long JSON Web Token. A limit is needed
# because a single line may have megabytes.
_CHARS_BEFORE_ANCHOR, _CHARS_AFTER_ANCHOR = 128, 4_096

# How many occurrences of an anchor are checked per text. Further ones are ignored.
_MAX_OCCURRENCES = 200
_MAX_CACHED_TEXTS = 1_024


class SecretFinder:
    """Finds lines that look like secrets. Results are cached by content hash."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[tuple[int, str], ...]] = {}

    def scan(self, text: str, content_hash: str) -> tuple[tuple[int, str], ...]:
        """Return each line number (from 1) that looks like a secret, with the kind of secret.

        ``content_hash`` is the content hash of the text.
        """
        if content_hash not in self._cache:
            if len(self._cache) >= _MAX_CACHED_TEXTS:
                del self._cache[next(iter(self._cache))]
            self._cache[content_hash] = tuple(sorted(set(_iter_secrets(text))))
        return self._cache[content_hash]


def _iter_secrets(text: str) -> Iterator[tuple[int, str]]:
    for one in SECRET_FORMATS:
        for anchor in one.anchors:
            yield from ((text.count("\n", 0, at) + 1, one.description) for at in _scan_format(text, one, anchor))


def _scan_format(text: str, secret_format: SecretFormat, anchor: str) -> Iterator[int]:
    at = text.find(anchor)
    for _ in range(_MAX_OCCURRENCES):
        if at < 0:
            return
        start = max(at - _CHARS_BEFORE_ANCHOR, text.rfind("\n", max(0, at - _CHARS_BEFORE_ANCHOR), at) + 1)
        line_end = text.find("\n", at, at + _CHARS_AFTER_ANCHOR)
        end = line_end if line_end >= 0 else at + _CHARS_AFTER_ANCHOR
        if secret_matcher(secret_format)(text[start:end]):
            yield at
        # An anchor within the same section has been checked together with this one.
        at = text.find(anchor, max(end, at + 1))
