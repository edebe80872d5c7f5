"""The lazy names of wiring: each is imported on first use."""

import subprocess
import sys

import pytest

from lamella import wiring


def test_every_name_is_there_and_listed() -> None:
    assert [name for name in wiring.__all__ if not hasattr(wiring, name)] == []
    assert set(wiring.__all__) <= set(dir(wiring))
    with pytest.raises(AttributeError, match="nobody"):
        wiring.nobody  # type: ignore[attr-defined]  # noqa: B018


def test_lazy_wiring_name_imports_only_what_it_needs() -> None:
    code = "from lamella.wiring import mask_url_secrets; import sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "lamella.settings.model" in loaded
    assert [
        name for name in loaded if name.startswith(("lamella.conversation", "lamella.providers", "lamella.stores"))
    ] == []
