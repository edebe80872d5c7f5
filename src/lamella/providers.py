"""Providers: what somebody needs who writes one, opens one, or reads what it answers.

A provider of one's own is a ``ChatProvider``: an object whose async generator ``stream(request)`` yields
``TextDelta``, ``ReasoningDelta``, ``ToolCall``, ``Usage`` and at last a ``Stop``. ``fold_deltas`` makes a ``Reply`` of
them. It raises a child of ``ProviderRefusedError`` for what the caller can mend, of ``ProviderRetryError`` for what may
work later, and ``ProviderError`` for the rest.
"""

from typing import TYPE_CHECKING

from lamella.fetching import fetch_later

if TYPE_CHECKING:
    from lamella.adapters.providers.anthropic.request import CacheMode
    from lamella.adapters.providers.anthropic.send import AnthropicProvider
    from lamella.adapters.providers.dialects import WireDialects
    from lamella.adapters.providers.facts.models import BuiltInModels
    from lamella.adapters.providers.facts.user_models import UserModels, load_profiles, parse_profiles
    from lamella.adapters.providers.gemini.send import GeminiProvider
    from lamella.adapters.providers.gemini.storage import ContentStore, StoragePlan, weigh_storage
    from lamella.adapters.providers.local.cache import Forecast
    from lamella.adapters.providers.local.engine import EngineOptions
    from lamella.adapters.providers.local.provider import LocalProvider, Progress
    from lamella.adapters.providers.openai_chat.send import OpenAIChatProvider
    from lamella.adapters.providers.openai_responses.send import OpenAIResponsesProvider
    from lamella.adapters.providers.opener import open_provider
    from lamella.core.artifacts.model import Image, ToolDefinition
    from lamella.core.ledger.cache import CacheProfile
    from lamella.core.log.call import CacheUse
    from lamella.core.messages.delta import (
        Delta,
        Diagnosis,
        NativeReply,
        ReasoningDelta,
        Reply,
        Stop,
        StopReason,
        TextDelta,
        ToolCall,
        fold_deltas,
    )
    from lamella.core.messages.model import Message, Role
    from lamella.core.messages.request import Request, Seams
    from lamella.core.messages.rounds import ToolOutput, ToolRound, round_messages
    from lamella.core.messages.usage import Usage
    from lamella.errors import (
        AddressError,
        ContextOverflowError,
        KeyRefusedError,
        ModelMissingError,
        OverloadedError,
        ProviderError,
        ProviderRefusedError,
        ProviderRetryError,
        ProviderTimeoutError,
        RateLimitedError,
        ReplyBrokenError,
        SdkMissingError,
        UnreachableError,
    )
    from lamella.ports import ChatProvider, Foresight, ModelBook
    from lamella.profiles import ModelProfile

__all__ = [
    "AddressError",
    "AnthropicProvider",
    "BuiltInModels",
    "CacheMode",
    "CacheProfile",
    "CacheUse",
    "ChatProvider",
    "ContentStore",
    "ContextOverflowError",
    "Delta",
    "Diagnosis",
    "EngineOptions",
    "Forecast",
    "Foresight",
    "GeminiProvider",
    "Image",
    "KeyRefusedError",
    "LocalProvider",
    "Message",
    "ModelBook",
    "ModelMissingError",
    "ModelProfile",
    "NativeReply",
    "OpenAIChatProvider",
    "OpenAIResponsesProvider",
    "OverloadedError",
    "Progress",
    "ProviderError",
    "ProviderRefusedError",
    "ProviderRetryError",
    "ProviderTimeoutError",
    "RateLimitedError",
    "ReasoningDelta",
    "Reply",
    "ReplyBrokenError",
    "Request",
    "Role",
    "SdkMissingError",
    "Seams",
    "Stop",
    "StopReason",
    "StoragePlan",
    "TextDelta",
    "ToolCall",
    "ToolDefinition",
    "ToolOutput",
    "ToolRound",
    "UnreachableError",
    "Usage",
    "UserModels",
    "WireDialects",
    "fold_deltas",
    "load_profiles",
    "open_provider",
    "parse_profiles",
    "round_messages",
    "weigh_storage",
]

if not TYPE_CHECKING:
    # What is here is fetched when it is first asked for: who writes a provider does not want all that ship.
    _HOMES = {
        "lamella.adapters.providers.anthropic.request": ("CacheMode",),
        "lamella.adapters.providers.anthropic.send": ("AnthropicProvider",),
        "lamella.adapters.providers.dialects": ("WireDialects",),
        "lamella.adapters.providers.facts.models": ("BuiltInModels",),
        "lamella.adapters.providers.facts.user_models": (
            "UserModels",
            "load_profiles",
            "parse_profiles",
        ),
        "lamella.adapters.providers.gemini.send": ("GeminiProvider",),
        "lamella.adapters.providers.gemini.storage": (
            "ContentStore",
            "StoragePlan",
            "weigh_storage",
        ),
        "lamella.adapters.providers.local.cache": ("Forecast",),
        "lamella.adapters.providers.local.engine": ("EngineOptions",),
        "lamella.adapters.providers.local.provider": (
            "LocalProvider",
            "Progress",
        ),
        "lamella.adapters.providers.openai_chat.send": ("OpenAIChatProvider",),
        "lamella.adapters.providers.openai_responses.send": ("OpenAIResponsesProvider",),
        "lamella.adapters.providers.opener": ("open_provider",),
        "lamella.core.artifacts.model": (
            "Image",
            "ToolDefinition",
        ),
        "lamella.core.ledger.cache": ("CacheProfile",),
        "lamella.profiles": ("ModelProfile",),
        "lamella.core.log.call": ("CacheUse",),
        "lamella.core.messages.delta": (
            "Delta",
            "Diagnosis",
            "NativeReply",
            "ReasoningDelta",
            "Reply",
            "Stop",
            "StopReason",
            "TextDelta",
            "ToolCall",
            "fold_deltas",
        ),
        "lamella.core.messages.model": (
            "Message",
            "Role",
        ),
        "lamella.core.messages.request": (
            "Request",
            "Seams",
        ),
        "lamella.core.messages.rounds": (
            "ToolOutput",
            "ToolRound",
            "round_messages",
        ),
        "lamella.core.messages.usage": ("Usage",),
        "lamella.errors": (
            "AddressError",
            "ContextOverflowError",
            "KeyRefusedError",
            "ModelMissingError",
            "OverloadedError",
            "ProviderError",
            "ProviderRefusedError",
            "ProviderRetryError",
            "ProviderTimeoutError",
            "RateLimitedError",
            "ReplyBrokenError",
            "SdkMissingError",
            "UnreachableError",
        ),
        "lamella.ports": (
            "ChatProvider",
            "Foresight",
            "ModelBook",
        ),
    }
    __getattr__, __dir__ = fetch_later(__name__, _HOMES)
