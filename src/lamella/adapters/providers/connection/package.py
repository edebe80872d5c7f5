"""Whether the package that speaks to a provider is installed, found out without importing it."""

from importlib.util import find_spec

from lamella.adapters.providers.row import SdkPackage
from lamella.errors import SdkMissingError, tell_install


def check_package(sdk: SdkPackage) -> None:
    """Refuses to go on without a package, with the line that installs it."""
    try:
        found = find_spec(sdk.module) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise SdkMissingError(f"The package {sdk.package} is not installed.", hint=tell_install(sdk.extra))
