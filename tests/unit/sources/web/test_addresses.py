"""Which addresses are fetched from."""

from ipaddress import ip_address

import pytest

from lamella.errors import AddressNotAllowedError, SettingError
from lamella.sources.web import AddressAllowlist, is_public, parse_allowlist, validate_url

CLOSED = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.8.8",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", CLOSED)
def test_non_public_address_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))
    assert not AddressAllowlist().is_allowed("example.org", address)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "172.32.0.1", "2606:2800:21f:cb07::1", "2a00:1450::1"])
def test_public_address_is_open(address: str) -> None:
    assert is_public(ip_address(address))


def test_allowlist_opens_given_networks_and_hosts_only() -> None:
    allowed = parse_allowlist(["10.1.0.0/16", "Wiki.Home.", "::1", "127.0.0.1"])
    assert allowed.is_allowed("any.example", "10.1.2.3")
    assert allowed.is_allowed("any.example", "127.0.0.1")
    assert allowed.is_allowed("localhost", "::1")
    assert allowed.is_allowed("wiki.home", "192.168.0.9")
    assert not allowed.is_allowed("any.example", "10.2.0.1")
    assert not allowed.is_allowed("wiki.home.example", "192.168.0.9")
    assert not allowed.is_allowed("any.example", "fe80::1%eth0")
    assert not allowed.is_allowed("any.example", "nonsense")


@pytest.mark.parametrize("one", ["http://a.b", "*.home", "10.0.0.0/99", "1.2.3", "a b", "me@here"])
def test_invalid_allowlist_entry_is_reported(one: str) -> None:
    with pytest.raises(SettingError, match="private_addresses"):
        parse_allowlist([one])


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://example.org/x", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("http://", "no address of a page"),
        ("http://exa mple.org", "no address of a page"),
        ("http://example.org:0/", "no address of a page"),
        ("http://example.org:99999/", "no address"),
        ("http://[::1", "no address"),
        (f"http://example.org/{'x' * 9_000}", "no address of a page"),
    ],
)
def test_invalid_page_url_is_refused(url: str, told: str) -> None:
    with pytest.raises(AddressNotAllowedError, match=told):
        validate_url(url)


def test_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(AddressNotAllowedError) as caught:
        validate_url("https://me:hunter2@example.org/x")
    assert "hunter2" not in caught.value.message + caught.value.hint
    assert "example.org/x" in caught.value.message


def test_fragment_is_not_sent() -> None:
    assert validate_url(" https://example.org/x?a=1#part ") == "https://example.org/x?a=1"
