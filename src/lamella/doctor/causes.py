"""The causes of money lost at a prefix cache, and what to do about each."""

from enum import StrEnum


class LossCause(StrEnum):
    """Why tokens were paid that a cache could have served. The values are part of the JSON output."""

    TIME_IN_PROMPT = "time_in_prompt"
    ID_IN_PROMPT = "id_in_prompt"
    TOOLS_REORDERED = "tools_reordered"
    TOOLS_CHANGED = "tools_changed"
    KEYS_REORDERED = "keys_reordered"
    WHITESPACE = "whitespace"
    SYSTEM_CHANGED = "system_changed"
    HISTORY_REWRITTEN = "history_rewritten"
    DOCUMENT_REPEATED = "document_repeated"
    TOOL_RESULT_CLEARED = "tool_result_cleared"
    SUMMARY = "summary"
    MODEL_CHANGED = "model_changed"
    PARAMETERS_CHANGED = "parameters_changed"
    BELOW_MINIMUM = "below_minimum"
    EXPIRED = "expired"
    BREAKPOINT_MISSING = "breakpoint_missing"
    BREAKPOINTS_EXCEEDED = "breakpoints_exceeded"
    CONSTANT_CACHED = "constant_cached"
    PROVIDER_MISS = "provider_miss"


DESCRIPTIONS: dict[LossCause, str] = {
    LossCause.TIME_IN_PROMPT: "A time changes inside the prompt",
    LossCause.ID_IN_PROMPT: "An id or a counter changes inside the prompt",
    LossCause.TOOLS_REORDERED: "The same tools come in another order",
    LossCause.TOOLS_CHANGED: "The tool definitions change",
    LossCause.KEYS_REORDERED: "The same JSON has its keys in another order",
    LossCause.WHITESPACE: "Only white space changes",
    LossCause.SYSTEM_CHANGED: "The text of the system prompt changes",
    LossCause.HISTORY_REWRITTEN: "Earlier messages are changed, moved or left out",
    LossCause.DOCUMENT_REPEATED: "A text that was sent before is sent again",
    LossCause.TOOL_RESULT_CLEARED: "Earlier tool results are removed or shortened",
    LossCause.SUMMARY: "Earlier messages are replaced by a summary",
    LossCause.MODEL_CHANGED: "The model changes within a conversation",
    LossCause.PARAMETERS_CHANGED: "A parameter changes that the cache depends on",
    LossCause.BELOW_MINIMUM: "The repeated part is shorter than the cache's minimum",
    LossCause.EXPIRED: "The pause is longer than the cache's lifetime",
    LossCause.BREAKPOINT_MISSING: "No cache breakpoint covers what repeats",
    LossCause.BREAKPOINTS_EXCEEDED: "There are more cache breakpoints than the provider accepts",
    LossCause.CONSTANT_CACHED: "The cached tokens stay the same while the prompt grows",
    LossCause.PROVIDER_MISS: "The provider missed although no byte in the log changed",
}

FIXES: dict[LossCause, str] = {
    LossCause.TIME_IN_PROMPT: "Move the time into the last message, or round it to the day.",
    LossCause.ID_IN_PROMPT: "Move the id into the last message, or leave it out of the prompt.",
    LossCause.TOOLS_REORDERED: "Sort the tools by name before you send them.",
    LossCause.TOOLS_CHANGED: "Send the same tools in every request of a conversation; restrict their use with tool_choice.",
    LossCause.KEYS_REORDERED: "Serialise JSON with sorted keys, or keep the text as it was first sent.",
    LossCause.WHITESPACE: "Store each message as it was sent, and send exactly that again.",
    LossCause.SYSTEM_CHANGED: "Keep the system prompt of a conversation, and send what is new in a later message.",
    LossCause.HISTORY_REWRITTEN: "Append to the history; cut old messages rarely and much at once.",
    LossCause.DOCUMENT_REPEATED: "Send a document once, where it stays in the history, and refer to it later.",
    LossCause.TOOL_RESULT_CLEARED: "Clear tool results rarely and many at once, best when the cache has expired anyway.",
    LossCause.SUMMARY: "Summarise when the cache has expired anyway, and cut enough that the next summary is far away.",
    LossCause.MODEL_CHANGED: "Stay with one model within a conversation; ask another model in a conversation of its own.",
    LossCause.PARAMETERS_CHANGED: "Keep these parameters the same within a conversation.",
    LossCause.BELOW_MINIMUM: "Put stable text, such as examples, before the part that changes until it reaches the minimum.",
    LossCause.EXPIRED: "Ask for the longer cache lifetime, or send a keep-alive request, if such pauses are common.",
    LossCause.BREAKPOINT_MISSING: "Set a cache breakpoint on the last message, and one after the system prompt.",
    LossCause.BREAKPOINTS_EXCEEDED: "Set at most four breakpoints: tools, system, the previous and the last message.",
    LossCause.CONSTANT_CACHED: "Set an explicit breakpoint at the end of the previous request, or a prompt_cache_key.",
    LossCause.PROVIDER_MISS: "Send related requests with one prompt_cache_key or session; if it recurs, ask the provider.",
}
