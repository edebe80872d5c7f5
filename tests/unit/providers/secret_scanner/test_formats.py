"""Formats of secrets: each is detected by its full form, not by its anchor alone."""

import pytest

from lamella.providers.secret_scanner import ANCHORS, SECRET_FORMATS, SecretFormat, secret_matcher

# None of them was ever anybody's: letters and digits in a row, in the form of each kind.
LETTERS = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3" * 4
MADE = {
    "AKIA": "AKIA" + "ABCDEFGH12345678",
    "AKC": f"token: AKC{LETTERS[:20]} ",
    "AccountKey=": f"AccountKey={LETTERS[:86]}==",
    "ghp_": f"ghp_{LETTERS[:36]}",
    "glpat-": f"glpat-{LETTERS[:20]}",
    "eyJ": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "_authToken=": f"//registry.example.org/:_authToken=npm_{LETTERS[:36]}",
    "T3BlbkFJ": f"sk-{LETTERS[:20]}T3BlbkFJ{LETTERS[:20]}",
    "PRIVATE KEY": "-----BEGIN RSA PRIVATE KEY-----",
    "pypi-AgE": f"pypi-AgEIcHlwaS5vcmc{LETTERS[:80]}",
    "SG.": f"SG.{LETTERS[:22]}.{LETTERS[:43]}",
    "xox": "xoxb-" + "123456789012-123456789012-abcdefghijkl",
    "sq0csp-": f"sq0csp-{LETTERS[:43]}",
    "k_live_": f"sk_live_{LETTERS[:24]}",
    "sk-ant-": f"sk-ant-api03-{LETTERS[:90]}",
    "sk-proj-": f"sk-proj-{LETTERS[:60]}",
    "AIza": f"AIza{LETTERS[:35]}",
    "hf_": f"hf_{LETTERS[:34]}",
    "github_pat_": f"github_pat_{LETTERS[:70]}",
}


def test_every_format_has_a_case() -> None:
    assert {one.anchors[0] for one in SECRET_FORMATS} == set(MADE)
    assert set(ANCHORS) == {anchor for one in SECRET_FORMATS for anchor in one.anchors}


@pytest.mark.parametrize("one", SECRET_FORMATS, ids=lambda one: one.anchors[0])
def test_secret_format_matches_example_not_prefix_alone(one: SecretFormat) -> None:
    tells = secret_matcher(one)
    assert tells(f"key = {MADE[one.anchors[0]]}")
    assert not tells(f"It begins with {one.anchors[0]} and then goes on.")
