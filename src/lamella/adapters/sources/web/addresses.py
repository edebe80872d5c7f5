"""Addresses: which may be connected to. Only public ones, unless whoever runs this allows a host or a network."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from lamella.errors import SettingError, SourceRefusedError

_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network

# What is not one machine of the public internet. Not left to a library: what it calls global has changed with versions.
# fmt: off
_CLOSED_4 = tuple(map(IPv4Network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "168.63.129.16/32",  # the metadata of one cloud stands at an address that looks public
)))
# fmt: on
_OPEN_6 = IPv6Network("2000::/3")
# Within that: protocols, tunnels that carry an address of version 4, examples. Everything else is closed as a whole:
# mapped and translated addresses, unique local and link-local ones, multicast.
_CLOSED_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")))

_SCHEMES = {"http": 80, "https": 443}
_LONGEST = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Hosts and networks that may be fetched from although they are not public."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[_Network, ...] = ()

    def admits(self, host: str, address: str) -> bool:
        """Whether a host may be connected to at an address that its name gave."""
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return is_public(found) or host.lower().rstrip(".") in self.hosts or any(found in net for net in self.networks)


def read_admission(allowed: Iterable[str]) -> Admission:
    """What is allowed: hosts by name, addresses, and networks such as 10.1.0.0/16."""
    hosts: set[str] = set()
    networks: list[_Network] = []
    for one in allowed:
        try:
            networks.append(ip_network(one.strip().strip("[]")))
        except ValueError as error:
            name = one.strip().lower().rstrip(".")
            if not name or any(mark in name for mark in "/:*@ ") or name.replace(".", "").isdigit():
                raise SettingError(
                    f"private_addresses has {one!r}, which is neither a host nor a network.",
                    hint="Write hosts and networks with commas between them, as in wiki.home, 10.1.0.0/16, 127.0.0.1.",
                ) from error
            hosts.add(name)
    return Admission(hosts=frozenset(hosts), networks=tuple(networks))


def is_public(address: _Address) -> bool:
    """Whether an address is one machine of the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_4)
    return address in _OPEN_6 and not any(address in network for network in _CLOSED_6)


def check_url(url: str) -> str:
    """The address without its fragment; an error if it is none that pages are fetched from."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SourceRefusedError(f"{url[:80]!r} is no address: {error}.", hint="Check it.") from error
    if parts.scheme.lower() not in _SCHEMES:
        raise SourceRefusedError(
            f"{url[:80]} is not fetched: only http and https are.",
            hint="Attach what it names by its path, or its text.",
        )
    if not host or port == 0 or len(url) > _LONGEST or any(letter <= " " or letter == "\x7f" for letter in url.strip()):
        raise SourceRefusedError(f"{url[:80]!r} is no address of a page.", hint="Check it.")
    if parts.username is not None or parts.password is not None:
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        raise SourceRefusedError(
            f"The address of {shown[:80]} has a name or a password in it.",
            hint="Take it out: what stands in an address is sent to models, and kept.",
        )
    return parts._replace(fragment="").geturl()
