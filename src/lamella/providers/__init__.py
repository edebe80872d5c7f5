"""Public names for opening a provider, writing your own provider, and reading a provider's answers.

A custom provider is a ``ModelProvider``: an object whose async generator ``stream(request)`` yields ``TextDelta``,
``ReasoningDelta``, ``ToolCall`` and ``Usage`` values and ends with a ``StopDelta``. ``reply_from_deltas`` combines
these values into a ``ModelReply``. A provider raises:

- a subclass of ``RequestRejectedError`` for errors that the caller can fix,
- a subclass of ``RetryableProviderError`` for errors that may go away later,
- ``ProviderError`` for all other errors.
"""

from typing import TYPE_CHECKING

from lamella.lazy_imports import make_lazy_exports

if TYPE_CHECKING:
    from lamella.core.artifacts.model import ImageData, ToolDefinition
    from lamella.core.ledger.cache_profile import CacheProfile
    from lamella.core.log.call import CacheUsage
    from lamella.core.messages import (
        CacheBoundaries,
        CacheDiagnosis,
        Delta,
        Message,
        ModelReply,
        ModelRequest,
        ProviderReply,
        ReasoningDelta,
        Role,
        StopDelta,
        StopReason,
        TextDelta,
        ToolCall,
        ToolOutput,
        ToolRound,
        Usage,
        reply_from_deltas,
        round_messages,
    )
    from lamella.errors import (
        AuthenticationError,
        ContextOverflowError,
        InvalidReplyError,
        ModelNotFoundError,
        ProviderError,
        ProviderOverloadedError,
        ProviderTimeoutError,
        ProviderUnreachableError,
        RateLimitError,
        RequestRejectedError,
        RetryableProviderError,
        SdkNotInstalledError,
        WrongEndpointError,
    )
    from lamella.ports import CacheForecaster, ModelProvider, ModelRegistry
    from lamella.profiles import ModelProfile
    from lamella.providers.anthropic import AnthropicProvider, BreakpointPlacement
    from lamella.providers.gemini import (
        CacheStorageAssumptions,
        GeminiProvider,
        RemoteCacheManager,
        estimate_storage_costs,
    )
    from lamella.providers.local import CacheForecast, LlamaServerOptions, LocalProvider, PromptProgress
    from lamella.providers.models import BuiltInModelProfiles
    from lamella.providers.open_provider import open_provider
    from lamella.providers.openai_chat import OpenAIChatProvider
    from lamella.providers.openai_responses import OpenAIResponsesProvider
    from lamella.providers.sdk_objects import BuiltInWireFormats
    from lamella.providers.user_models import UserModels, load_profiles, parse_profiles

__all__ = [
    "AnthropicProvider",
    "AuthenticationError",
    "BreakpointPlacement",
    "BuiltInModelProfiles",
    "BuiltInWireFormats",
    "CacheBoundaries",
    "CacheDiagnosis",
    "CacheForecast",
    "CacheForecaster",
    "CacheProfile",
    "CacheStorageAssumptions",
    "CacheUsage",
    "ContextOverflowError",
    "Delta",
    "GeminiProvider",
    "ImageData",
    "InvalidReplyError",
    "LlamaServerOptions",
    "LocalProvider",
    "Message",
    "ModelNotFoundError",
    "ModelProfile",
    "ModelProvider",
    "ModelRegistry",
    "ModelReply",
    "ModelRequest",
    "OpenAIChatProvider",
    "OpenAIResponsesProvider",
    "PromptProgress",
    "ProviderError",
    "ProviderOverloadedError",
    "ProviderReply",
    "ProviderTimeoutError",
    "ProviderUnreachableError",
    "RateLimitError",
    "ReasoningDelta",
    "RemoteCacheManager",
    "RequestRejectedError",
    "RetryableProviderError",
    "Role",
    "SdkNotInstalledError",
    "StopDelta",
    "StopReason",
    "TextDelta",
    "ToolCall",
    "ToolDefinition",
    "ToolOutput",
    "ToolRound",
    "Usage",
    "UserModels",
    "WrongEndpointError",
    "estimate_storage_costs",
    "load_profiles",
    "open_provider",
    "parse_profiles",
    "reply_from_deltas",
    "round_messages",
]

if not TYPE_CHECKING:
    # Names are imported on first access: the author of a custom provider should not load every built-in provider.
    _HOMES = {
        "lamella.providers.anthropic": ("BreakpointPlacement", "AnthropicProvider"),
        "lamella.providers.sdk_objects": ("BuiltInWireFormats",),
        "lamella.providers.models": ("BuiltInModelProfiles",),
        "lamella.providers.user_models": ("UserModels", "load_profiles", "parse_profiles"),
        "lamella.providers.gemini": (
            "GeminiProvider",
            "RemoteCacheManager",
            "CacheStorageAssumptions",
            "estimate_storage_costs",
        ),
        "lamella.providers.local": ("CacheForecast", "LlamaServerOptions", "LocalProvider", "PromptProgress"),
        "lamella.providers.openai_chat": ("OpenAIChatProvider",),
        "lamella.providers.openai_responses": ("OpenAIResponsesProvider",),
        "lamella.providers.open_provider": ("open_provider",),
        "lamella.core.artifacts.model": ("ImageData", "ToolDefinition"),
        "lamella.core.ledger.cache_profile": ("CacheProfile",),
        "lamella.profiles": ("ModelProfile",),
        "lamella.core.log.call": ("CacheUsage",),
        "lamella.core.messages": (
            "Delta",
            "CacheDiagnosis",
            "ProviderReply",
            "ReasoningDelta",
            "ModelReply",
            "StopDelta",
            "StopReason",
            "TextDelta",
            "ToolCall",
            "reply_from_deltas",
            "Message",
            "Role",
            "ModelRequest",
            "CacheBoundaries",
            "ToolOutput",
            "ToolRound",
            "round_messages",
            "Usage",
        ),
        "lamella.errors": (
            "WrongEndpointError",
            "ContextOverflowError",
            "AuthenticationError",
            "ModelNotFoundError",
            "ProviderOverloadedError",
            "ProviderError",
            "RequestRejectedError",
            "RetryableProviderError",
            "ProviderTimeoutError",
            "RateLimitError",
            "InvalidReplyError",
            "SdkNotInstalledError",
            "ProviderUnreachableError",
        ),
        "lamella.ports": ("ModelProvider", "CacheForecaster", "ModelRegistry"),
    }
    __getattr__, __dir__ = make_lazy_exports(__name__, _HOMES)
