"""The engine: llama.cpp's own server inside this process, and the few questions asked of it."""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlsplit

from lamella.adapters.providers.local.cache import SIMILAR
from lamella.adapters.providers.wire.fields import Fields
from lamella.errors import ModelMissingError, SdkMissingError, tell_install

_PATIENCE = 60.0
_POLL = 0.005
_TEMPLATE = "/apply-template"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How the engine runs. ``window`` is in tokens.

    ``shelf`` is how many MiB of memory prompts of other conversations may take, none of it in use until there are any;
    0 keeps only the last prompt. ``batch`` is how many tokens are read between two signs of progress.
    """

    window: int = 8_192
    threads: int = 1
    shelf: int = 512
    batch: int = 256


class EngineRefusal(Exception):  # noqa: N818 - it is an answer, not a failure of ours
    """The engine's answer is an error: a status, its kind, its words."""

    def __init__(self, *, status: int, kind: str, words: str) -> None:
        super().__init__(words)
        self.status, self.kind, self.words = status, kind, words


class LlamaServer:
    """A loaded model. Loading takes a second and the weights' size in memory; ``close`` gives it back."""

    def __init__(self, weights: Path, options: EngineOptions) -> None:
        # It listens on the loopback, where any program and any web page could call it without a key.
        self._key = token_urlsafe()
        self._server = _load(weights, options, key=self._key)
        self.address = urlsplit(self._server.listening_address).netloc
        self.window = int(self._slot()["n_ctx"])

    def chat(self, body: Fields, listen: Callable[[Fields], bool]) -> None:
        """Answer a chat request; every chunk goes to ``listen``, which ends the answer by returning true."""
        refusals: list[Fields] = []

        def heard(chunk: Fields) -> bool:
            if "error" in chunk:
                refusals.append(chunk)
                return True
            return listen(chunk)

        try:
            self._server.handle_chat_completions(dict(body), heard)
        except (RuntimeError, ValueError) as error:
            # The server raises for what it cannot make a prompt of, such as pictures.
            raise EngineRefusal(status=400, kind="invalid_request_error", words=str(error)) from error
        if refusals:
            raise _refusal(refusals[0], 500)

    def render(self, body: Fields) -> tuple[int, ...]:
        """The tokens of a chat request's prompt, by the model's own template and vocabulary."""
        return self.tokenize(str(self._ask(_TEMPLATE, body)["prompt"]), whole=True)

    def tokenize(self, text: str, *, whole: bool = False) -> tuple[int, ...]:
        """The tokens of a part of a prompt, or of a whole one, which begins with what the vocabulary asks for."""
        return tuple(self._ask("/tokenize", {"content": text, "add_special": whole, "parse_special": True})["tokens"])

    def count_held(self) -> int:
        """How many tokens the cache holds once the engine rests: of the last prompt, and of what was said to it."""
        while (slot := self._slot())["is_processing"]:
            time.sleep(_POLL)
        return int(slot["n_prompt_tokens"])

    def close(self) -> None:
        self._server = None

    def _slot(self) -> Fields:
        slots = self._ask("/slots", None)
        first: Fields = slots[0]
        return first

    def _ask(self, path: str, body: Fields | None) -> Any:  # noqa: ANN401 - any JSON
        connection = HTTPConnection(self.address, timeout=_PATIENCE)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request("GET" if body is None else "POST", path, None if body is None else _pack(body), headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            raise EngineRefusal(status=500, kind="server_error", words=f"{path}: {error}") from error
        finally:
            connection.close()
        if answer.status == 200:
            return found
        refusal = _refusal(found, answer.status)
        # What no prompt can be made of is the request's fault, though the server calls it its own.
        raise EngineRefusal(status=400, kind=refusal.kind, words=refusal.words) if path == _TEMPLATE else refusal


def _pack(body: Fields) -> bytes:
    return json.dumps(dict(body)).encode()


def _refusal(answer: object, status: int) -> EngineRefusal:
    error = answer.get("error") if isinstance(answer, Mapping) else None
    told: Fields = error if isinstance(error, Mapping) else {}
    code = told.get("code")
    return EngineRefusal(
        status=code if isinstance(code, int) else status,
        kind=str(told.get("type", "server_error")),
        words=str(told.get("message", answer)),
    )


def _load(weights: Path, options: EngineOptions, *, key: str) -> Any:  # noqa: ANN401 - the package has no types
    # Threads that wait by spinning made answers five to ten times slower on two busy cores (2026-11-15). The engine's
    # runtime reads this once, when it is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from xllamacpp import CommonParams, Server
    except ImportError as error:
        raise SdkMissingError("The package xllamacpp is not installed.", hint=tell_install("local")) from error
    params = CommonParams()
    params.model.path = str(weights)
    params.n_ctx, params.n_batch = options.window, options.batch
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.cache_ram_mib = options.shelf
    # With the engine's own value, a tenth, a title asked for with the same instructions stands in the way of the
    # conversation it is for.
    params.slot_prompt_similarity = SIMILAR
    # One slot: what one conversation left in the cache is not handed to another by chance.
    params.n_parallel = 1
    params.verbosity = 0
    params.api_keys = [key]
    params.endpoint_slots = True
    params.ui = False
    try:
        return Server(params)
    except RuntimeError as error:
        size = weights.stat().st_size / 1e6
        raise ModelMissingError(
            f"llama.cpp cannot load {weights} ({size:,.0f} MB): {error}",
            hint="The file may be cut off or of a kind this version does not know, or memory may be short. "
            "Fetch it again, or choose a smaller model or window.",
        ) from error
