"""Formats of secrets: how each begins, and what says for sure that it is one."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFormat:
    """A kind of secret, the letters that one of it cannot be without, and what tells one in a short text.

    ``detector`` is a class of the package ``detect_secrets``, imported when such letters were seen: that takes as long
    as ten bare Pythons (270 ms, 2026-11-17), and most texts have none. ``pattern`` is ours.
    """

    what: str
    anchors: tuple[str, ...]
    detector: tuple[str, str] | None = None
    pattern: str = ""


# Kinds without letters of their own are left out: what is told by its length or by how random it looks is wrong too
# often (docs/decisions/detect-secrets.md).
FORMATS = (
    SecretFormat(
        what="an AWS access key", anchors=("AKIA", "ASIA", "ABIA", "ACCA"), detector=("aws", "AWSKeyDetector")
    ),
    SecretFormat(what="an Artifactory token", anchors=("AKC",), detector=("artifactory", "ArtifactoryDetector")),
    SecretFormat(
        what="an Azure storage key",
        anchors=("AccountKey=",),
        detector=("azure_storage_key", "AzureStorageKeyDetector"),
    ),
    SecretFormat(
        what="a GitHub token",
        anchors=("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        detector=("github_token", "GitHubTokenDetector"),
    ),
    SecretFormat(
        what="a GitLab token",
        anchors=("glpat-", "gldt-", "glft-", "glsoat-", "glrt-"),
        detector=("gitlab_token", "GitLabTokenDetector"),
    ),
    SecretFormat(what="a JSON Web Token", anchors=("eyJ",), detector=("jwt", "JwtTokenDetector")),
    SecretFormat(what="an npm token", anchors=("_authToken=",), detector=("npm", "NpmDetector")),
    SecretFormat(what="an OpenAI key", anchors=("T3BlbkFJ",), detector=("openai", "OpenAIDetector")),
    SecretFormat(
        what="a private key",
        anchors=("PRIVATE KEY", "PuTTY-User-Key-File"),
        detector=("private_key", "PrivateKeyDetector"),
    ),
    SecretFormat(what="a PyPI token", anchors=("pypi-AgE",), detector=("pypi_token", "PypiTokenDetector")),
    SecretFormat(what="a SendGrid key", anchors=("SG.",), detector=("sendgrid", "SendGridDetector")),
    SecretFormat(what="a Slack token", anchors=("xox", "hooks.slack.com"), detector=("slack", "SlackDetector")),
    SecretFormat(what="a Square token", anchors=("sq0csp-",), detector=("square_oauth", "SquareOAuthDetector")),
    SecretFormat(what="a Stripe key", anchors=("k_live_",), detector=("stripe", "StripeDetector")),
    # Makers of models and others that the package does not know yet; their forms as of 2026-11.
    SecretFormat(what="an Anthropic key", anchors=("sk-ant-",), pattern=r"sk-ant-[a-z0-9]+-[A-Za-z0-9_-]{40,}"),
    SecretFormat(what="an OpenAI key", anchors=("sk-proj-", "sk-svcacct-"), pattern=r"sk-(?:proj|svcacct)-[\w-]{40,}"),
    SecretFormat(what="a Google API key", anchors=("AIza",), pattern=r"AIza[0-9A-Za-z_-]{35}(?![\w-])"),
    SecretFormat(what="a Hugging Face token", anchors=("hf_",), pattern=r"(?<!\w)hf_[A-Za-z0-9]{34}(?!\w)"),
    SecretFormat(what="a GitHub token", anchors=("github_pat_",), pattern=r"github_pat_[A-Za-z0-9_]{60,}"),
)
ANCHORS: tuple[str, ...] = tuple(dict.fromkeys(anchor for one in FORMATS for anchor in one.anchors))


@cache
def find_teller(one: SecretFormat) -> Callable[[str], bool]:
    """What says whether a short text holds a secret of this kind. Nothing is sent anywhere to find out."""
    if one.detector is None:
        pattern = re.compile(one.pattern)
        return lambda text: pattern.search(text) is not None
    module, name = one.detector
    detector = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
    return lambda text: any(True for _ in detector.analyze_string(text))
