"""Every field, part, item and tool of the three APIs: passed on, translated, refused by name, or listed as unused.

An upstream of the client's API gets each of them byte for byte. For an upstream of another API a row of the table says
what becomes of it. The tests at the end compare the table with the types of the SDKs, so that a new field needs a row.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsBase
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from tests.server.running import RunningServer
from tests.server.upstreams import PATHS, body_for, upstream_of
from tests.wire.serving import Loopback

Json = dict[str, Any]
HI: list[Json] = [{"role": "user", "content": "hi"}]
SCHEMA: Json = {"type": "object", "properties": {"day": {"type": "string"}}}
PIXEL = "iVBORw0KGgo="
PICTURE = f"data:image/png;base64,{PIXEL}"
PDF = "data:application/pdf;base64,JVBERg=="
OWN = {"messages": "anthropic", "chat": "openai", "responses": "openai"}
OTHERS = {"messages": ("compatible", "openai"), "chat": ("anthropic",), "responses": ("anthropic", "compatible")}


class Sent(NamedTuple):
    """Values that the upstream gets, by their paths in its body; a value ``...`` only has to be there."""

    values: Mapping[str, object]


class Refused(NamedTuple):
    """The request is refused with the name of a field."""

    param: str


class Unused(NamedTuple):
    """The request is answered, and the note lists a field that has no effect."""

    name: str


class NotFound(NamedTuple):
    """The request names something that this owner does not have."""


Becomes = Sent | Refused | Unused | NotFound


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a client sends, and what an upstream of another API makes of it; ``by_kind`` has what is special to one."""

    wire: str
    name: str
    sends: Json
    becomes: Becomes
    by_kind: Mapping[str, Becomes] = field(default_factory=dict)

    def expected(self, kind: str) -> Becomes | None:
        if kind == "gemini" and isinstance(self.becomes, Sent):
            return self.by_kind.get(kind)
        return self.by_kind.get(kind, self.becomes)


def row(
    wire: str,
    name: str,
    sends: Json,
    becomes: Becomes | Json,
    **by_kind: Becomes | Json,
) -> Row:
    def read(one: Becomes | Json) -> Becomes:
        return Sent(one) if isinstance(one, dict) else one

    return Row(
        wire=wire,
        name=name,
        sends=sends,
        becomes=read(becomes),
        by_kind={kind: read(one) for kind, one in by_kind.items()},
    )


def asked(*blocks: Json) -> Json:
    """The message of a user with these parts."""
    return {"role": "user", "content": list(blocks)}


# Anthropic's API.

TOOL = {"name": "tide", "input_schema": SCHEMA}
FUNCTION: Json = {"type": "function", "function": {"name": "tide", "parameters": SCHEMA}}
EFFORT = {"compatible": "reasoning_effort", "openai": "reasoning.effort"}


def messages(name: str, sends: Json, becomes: Any, **by_kind: Any) -> Row:  # noqa: ANN401 - see row
    return row("messages", name, sends, becomes, **by_kind)


def block(name: str, shown: Json, becomes: Any, **by_kind: Any) -> Row:  # noqa: ANN401 - see row
    return messages(name, {"messages": [asked(shown)]}, becomes, **by_kind)


def result(name: str, shown: Json, becomes: Any, **by_kind: Any) -> Row:  # noqa: ANN401 - see row
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "tide", "input": {}}]}
    answered = asked({"type": "tool_result", "tool_use_id": "t1", "content": [shown]})
    return messages(f"tool_result {name}", {"messages": [*HI, call, answered], "tools": [TOOL]}, becomes, **by_kind)


AT_RESULT = {"compatible": "messages.2.content", "openai": "input.2.output"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
SEARCH = {"type": "search_result", "title": "T", "source": "https://a", "content": [{"type": "text", "text": "x"}]}
TEXT_DOCUMENT = {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}

MESSAGES = [
    messages("model max_tokens", {}, {"max_tokens": 100}, openai={"max_output_tokens": 100},
             gemini={"generationConfig.maxOutputTokens": 100}),
    messages("stream", {"stream": True}, {"stream": True}),
    messages("system", {"system": "A"}, {"messages.0": {"role": "system", "content": "A"}},
             openai={"input.0.role": "developer"}, gemini={"systemInstruction.parts.0.text": "A"}),
    messages("system blocks", {"system": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]},
             {"messages.0.content.1.text": "B"}, openai={"input.0.content.1.text": "B"}),
    messages("system in place", {"messages": [*HI, {"role": "system", "content": "S"}]},
             {"messages.1": {"role": "system", "content": "S"}}, openai={"input.1.role": "developer"},
             gemini=Refused("messages.1.role")),
    messages("thinking enabled", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"reasoning_effort": "low"},
             openai={"reasoning.effort": "low"}, gemini={"generationConfig.thinkingConfig.thinking_level": "LOW"}),
    messages("thinking adaptive", {"thinking": {"type": "adaptive"}}, {"stream": True}),
    messages("thinking between_tools", {"thinking": {"type": "between_tools"}}, {"stream": True}),
    messages("thinking disabled", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"},
             openai={"reasoning.effort": "none"}, gemini={"generationConfig.thinkingConfig.thinking_level": "MINIMAL"}),
    messages("thinking.display", {"thinking": {"type": "adaptive", "display": "omitted"}}, Unused("thinking.display")),
    messages("thinking.block_binding", {"thinking": {"type": "adaptive", "block_binding": {"x": 1}}},
             Unused("thinking.block_binding")),
    messages("thinking.x", {"thinking": {"type": "adaptive", "x": 1}}, Refused("thinking.x")),
    messages("output_config.effort", {"output_config": {"effort": "max"}}, {"reasoning_effort": "max"},
             openai={"reasoning.effort": "max"}, gemini={"generationConfig.thinkingConfig.thinking_level": "HIGH"}),
    messages("output_config.format", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
             {"response_format.json_schema.schema": SCHEMA}, openai={"text.format.schema": SCHEMA},
             gemini={"generationConfig.responseJsonSchema": SCHEMA}),
    messages("output_config.x", {"output_config": {"task_budget": {"x": 1}}}, Refused("output_config.task_budget")),
    messages("tool_choice auto", {"tools": [TOOL], "tool_choice": {"type": "auto"}}, {"tool_choice": "auto"}),
    messages("tool_choice any", {"tools": [TOOL], "tool_choice": {"type": "any"}}, {"tool_choice": "required"},
             gemini={"toolConfig.functionCallingConfig.mode": "ANY"}),
    messages("tool_choice tool", {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "tide"}},
             {"tool_choice": {"type": "function", "function": {"name": "tide"}}},
             openai={"tool_choice": {"type": "function", "name": "tide"}},
             gemini={"toolConfig.functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["tide"]}}),
    messages("tool_choice none", {"tools": [TOOL], "tool_choice": {"type": "none"}}, {"tool_choice": "none"},
             gemini={"toolConfig.functionCallingConfig.mode": "NONE"}),
    messages("disable_parallel_tool_use",
             {"tools": [TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
             {"parallel_tool_calls": False}, gemini=Refused("tool_choice.disable_parallel_tool_use")),
    messages("stop_sequences", {"stop_sequences": ["."]}, {"stop": ["."]}, gemini={"generationConfig.stopSequences": ["."]}),
    messages("five stop_sequences", {"stop_sequences": list("abcde")}, Refused("stop_sequences"),
             gemini={"generationConfig.stopSequences": list("abcde")}),
    messages("temperature", {"temperature": 0.5}, {"temperature": 0.5}, gemini={"generationConfig.temperature": 0.5}),
    messages("top_p", {"top_p": 0.5}, {"top_p": 0.5}, gemini={"generationConfig.topP": 0.5}),
    messages("top_k", {"top_k": 5}, Refused("top_k"), gemini={"generationConfig.topK": 5}),
    messages("context_management keep", {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
             Unused("context_management")),
    messages("context_management", {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
             Refused("context_management")),
    messages("metadata.user_id", {"metadata": {"user_id": "u"}}, Unused("metadata")),
    *(messages(name, {name: {"x": 1}}, Unused(name)) for name in ("cache_control", "diagnostics")),
    *(messages(name, {name: "x"}, Unused(name)) for name in ("service_tier", "speed")),
    *(messages(name, {name: "x"}, Refused(name)) for name in (
        "container", "mcp_servers", "compaction", "fallbacks", "thread", "inference_geo", "user_profile_id",
        "workspace_id", "billing_policy", "fallback_credit_token", "betas", "x_unknown")),
    # Blocks.
    block("text", {"type": "text", "text": "x"}, {"messages.0.content": "x"}, openai={"input.0.content.0.text": "x"}),
    block("cache_control of a block", {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}},
          Unused("cache_control")),
    block("field of a block", {"type": "text", "text": "x", "y": 1}, Refused("messages.0.content.0.y")),
    block("image", IMAGE, {"messages.0.content.0.image_url.url": PICTURE}, openai={"input.0.content.0.image_url": PICTURE},
          gemini={"contents.0.parts.0.inlineData": ...}),
    block("image source", {"type": "image", "source": {"type": "url", "url": "a", "x": 1}}, Refused("messages.0.content.0.source.x")),
    block("image url", {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
          {"messages.0.content.0.image_url.url": "https://a/b.png"}, openai={"input.0.content.0.image_url": "https://a/b.png"},
          gemini=Refused("messages.0.content")),
    block("document base64", {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}},
          {"messages.0.content.0.file.file_data": PDF}, openai={"input.0.content.0.file_data": PDF},
          gemini=Refused("messages.0.content")),
    block("document url", {"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}},
          {"input.0.content.0.file_url": "https://a/b.pdf"}, compatible=Refused("messages.0.content")),
    block("document text", TEXT_DOCUMENT, {"messages.0.content.0.text": "T", "messages.0.content.1.text": "x"},
          openai={"input.0.content.0.text": "T", "input.0.content.1.text": "x"}, gemini={"contents.0.parts.0.text": "T\n\nx"}),
    block("document content", {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
          {"messages.0.content": "x"}, openai={"input.0.content.0.text": "x"}),
    block("document file", {"type": "document", "source": {"type": "file", "file_id": "f"}},
          Refused("messages.0.content.0.source.type")),
    block("document context", {**TEXT_DOCUMENT, "context": "C"}, {"messages.0.content.1.text": "C"},
          openai={"input.0.content.1.text": "C"}),
    block("document citations", {**TEXT_DOCUMENT, "citations": {"enabled": True}}, Refused("messages.0.content.0.citations")),
    block("search_result", SEARCH, {"messages.0.content.2.text": "x"}, openai={"input.0.content.2.text": "x"}),
    *(block(kind, {"type": kind}, Refused("messages.0.content.0.type")) for kind in (
        "server_tool_use", "web_search_tool_result", "mcp_tool_use", "container_upload", "compaction", "tool_addition",
        "tool_removal", "fallback")),
    messages("thinking block", {"messages": [*HI, {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "a"}]}, *HI]}, Unused("reasoning")),
    messages("redacted_thinking block", {"messages": [*HI, {"role": "assistant", "content": [
        {"type": "redacted_thinking", "data": "s"}, {"type": "text", "text": "a"}]}, *HI]}, Unused("reasoning")),
    result("text", {"type": "text", "text": "x"}, {"messages.2.content": "x"}, openai={"input.2.output": "x"},
           gemini={"contents.2.parts.0.functionResponse.response.output": "x"}),
    result("two texts", {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "x"}]},
           {"messages.2.content.2.text": "x"}, openai={"input.2.output.2.text": "x"},
           gemini={"contents.2.parts.0.functionResponse.response.output": "T\n\ns\n\nx"}),
    result("image", IMAGE, {"messages.3.content.1.image_url.url": PICTURE}, openai={"input.2.output.0.image_url": PICTURE},
           gemini={"contents.2.parts.0.functionResponse.parts.0.inline_data.mime_type": "image/png"}),
    result("document", TEXT_DOCUMENT, {"messages.2.content.1.text": "x"}, openai={"input.2.output.1.text": "x"}),
    result("search_result", SEARCH, {"messages.2.content.0.text": "T"}, openai={"input.2.output.0.text": "T"}),
    result("tool_reference", {"type": "tool_reference", "tool_name": "t"},
           {"messages.2.content": '{"type":"tool_reference","tool_name":"t"}'},
           openai={"input.2.output": '{"type":"tool_reference","tool_name":"t"}'}),
    result("browser_state", {"type": "browser_state", "url": "https://a"}, {"messages.2.content": ...},
           openai={"input.2.output": ...}),
    result("tool_use inside", {"type": "tool_use", "id": "x", "name": "y", "input": {}},
           Refused("messages.2.content.0.content.0.type")),
    # Tools.
    messages("tools.strict", {"tools": [TOOL | {"strict": True}]}, {"tools.0.function.strict": True},
             openai={"tools.0.strict": True}, gemini=Unused("tools.strict")),
    messages("tools", {"tools": [TOOL | {"strict": True}]}, {"tools.0.function.strict": True}, openai={"tools.0.strict": True},
             gemini={"tools.0.functionDeclarations.0.name": "tide"}),
    *(messages(f"tools.{name}", {"tools": [TOOL | {name: True}]}, Unused(f"tools.{name}"))
      for name in ("defer_loading", "eager_input_streaming")),
    messages("tools.input_examples", {"tools": [TOOL | {"input_examples": [{}]}]}, Refused("tools.0.input_examples")),
    *(messages(kind, {"tools": [{"type": kind, "name": "x"}]}, Refused("tools.0.type")) for kind in (
        "bash_20250124", "text_editor_20250728", "memory_20250818", "computer_20251124", "web_search_20250305",
        "code_execution_20250825", "mcp_toolset")),
]  # fmt: skip


# OpenAI's Chat Completions API.


def chat(name: str, sends: Json, becomes: Any, **by_kind: Any) -> Row:  # noqa: ANN401 - see row
    return row("chat", name, sends, becomes, **by_kind)


def part(name: str, shown: Json, becomes: Any, **by_kind: Any) -> Row:  # noqa: ANN401 - see row
    return chat(name, {"messages": [asked(shown)]}, becomes, **by_kind)


def said(**fields: object) -> Json:
    return {"messages": [*HI, {"role": "assistant", "content": "a", **fields}, *HI]}


CALLS = [{"id": "t1", "type": "function", "function": {"name": "tide", "arguments": "{}"}}]
JSON_FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
CHAT = [
    chat("model messages", {}, {"messages.0.content.0.text": "hi", "max_tokens": 128_000}),
    chat("stream", {"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}),
    chat("stream_options.include_obfuscation", {"stream_options": {"include_obfuscation": True}}, Unused("include_obfuscation")),
    *(chat(name, {name: 5}, {"max_tokens": 5}, gemini={"generationConfig.maxOutputTokens": 5})
      for name in ("max_tokens", "max_completion_tokens")),
    chat("tools", {"tools": [FUNCTION]}, {"tools.0.name": "tide"}, gemini={"tools.0.functionDeclarations.0.name": "tide"}),
    chat("tool_choice required", {"tools": [FUNCTION], "tool_choice": "required"}, {"tool_choice": {"type": "any"}}),
    chat("tool_choice named", {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "tide"}}},
         {"tool_choice": {"type": "tool", "name": "tide"}}),
    chat("parallel_tool_calls true", {"tools": [FUNCTION], "parallel_tool_calls": True}, {"tool_choice": {"type": "auto"}},
         gemini={"tools.0.functionDeclarations.0.name": "tide"}),
    chat("field of a call", said(tool_calls=[{"id": "t", "type": "function", "function": {"name": "a", "arguments": "{}", "x": 1}}]),
         Refused("messages.1.tool_calls.0.function.x")),
    chat("arguments as an object", said(tool_calls=[{"id": "t", "type": "function", "function": {"name": "a", "arguments": {}}}]),
         Refused("messages.1.tool_calls.0.function.arguments")),
    chat("tool_choice x", {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "tide", "x": 1}}},
         Refused("tool_choice.function.x")),
    chat("parallel_tool_calls", {"tools": [FUNCTION], "parallel_tool_calls": False},
         {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
    chat("response_format", {"response_format": JSON_FORM}, {"output_config.format.schema": SCHEMA},
         gemini={"generationConfig.responseJsonSchema": SCHEMA}),
    chat("response_format name", {"response_format": JSON_FORM}, Unused("response_format.name")),
    chat("json_object", {"response_format": {"type": "json_object"}}, Refused("response_format.type")),
    chat("stop", {"stop": "."}, {"stop_sequences": ["."]}, gemini={"generationConfig.stopSequences": ["."]}),
    chat("temperature", {"temperature": 0.5}, {"temperature": 0.5}),
    chat("top_p", {"top_p": 0.5}, {"top_p": 0.5}),
    chat("reasoning_effort", {"reasoning_effort": "minimal"}, {"output_config.effort": "low"},
         gemini={"generationConfig.thinkingConfig.thinking_level": "MINIMAL"}),
    *(chat(name, {name: value}, Unused(name)) for name, value in {
        "user": "u", "safety_identifier": "u", "metadata": {"a": "b"}, "store": False, "prompt_cache_key": "k",
        "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "auto"}, "prompt_cache_diagnostics": {"x": 1},
        "service_tier": "flex", "verbosity": "low"}.items()),
    chat("seed", {"seed": 7}, Unused("seed"), gemini={"generationConfig.seed": 7}),
    *(chat(name, {name: value}, Refused(name)) for name, value in {
        "n": 2, "logprobs": True, "top_logprobs": 2, "logit_bias": {"1": 1}, "audio": {"voice": "x"},
        "modalities": ["text", "audio"], "prediction": {"x": 1}, "web_search_options": {"x": 1},
        "moderation": {"x": 1}, "store": True, "x_unknown": 1}.items()),
    *(chat(name, {name: 0.5}, Refused(name), gemini={f"generationConfig.{camel}": 0.5}) for name, camel in (
        ("presence_penalty", "presencePenalty"), ("frequency_penalty", "frequencyPenalty"))),
    chat("functions function_call", {"functions": [FUNCTION["function"]], "function_call": {"name": "tide"}},
         {"tools.0.name": "tide", "tool_choice": {"type": "tool", "name": "tide"}}),
    # Roles.
    chat("developer system", {"messages": [{"role": "developer", "content": "A"}, {"role": "system", "content": "B"}, *HI]},
         {"system.0.text": "A", "system.1.text": "B"}, gemini={"systemInstruction.parts.0.text": ...}),
    chat("system in place", {"messages": [*HI, {"role": "system", "content": "B"}]}, {"messages.1.role": "system"},
         gemini=Refused("messages.1.role")),
    chat("assistant refusal", said(content=None, refusal="No."), {"messages.1.content.0.text": "No."}),
    chat("assistant audio", said(audio={"id": "x"}), Refused("messages.1.audio")),
    chat("assistant reasoning_content", said(reasoning_content="hm"), Unused("messages.reasoning_content")),
    chat("assistant tool_calls and tool", {"messages": [*HI, {"role": "assistant", "content": None, "tool_calls": CALLS},
         {"role": "tool", "tool_call_id": "t1", "content": "noon"}], "tools": [FUNCTION]},
         {"messages.1.content.0.type": "tool_use", "messages.2.content.0.tool_use_id": "t1"},
         gemini={"contents.2.parts.0.functionResponse.name": "tide"}),
    chat("assistant function_call and function", {"messages": [*HI, {"role": "assistant", "content": None,
         "function_call": {"name": "tide", "arguments": "{}"}}, {"role": "function", "name": "tide", "content": "noon"}]},
         {"messages.1.content.0.name": "tide", "messages.2.content.0.tool_use_id": "tide"}),
    chat("name of an author", {"messages": [{"role": "user", "name": "ana", "content": "hi"}]}, Unused("messages.name")),
    chat("field of a message", {"messages": [{"role": "user", "content": "hi", "x": 1}]}, Refused("messages.0.x")),
    chat("unknown role", {"messages": [{"role": "oracle", "content": "hi"}]}, Refused("messages.0.role")),
    # Parts.
    part("text", {"type": "text", "text": "x"}, {"messages.0.content.0.text": "x"}),
    part("image_url", {"type": "image_url", "image_url": {"url": PICTURE}}, {"messages.0.content.0.source.data": PIXEL},
         gemini={"contents.0.parts.0.inlineData": ...}),
    part("image_url.detail", {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}, Unused("image_url.detail")),
    part("file", {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}, {"messages.0.content.0.title": "a.pdf"},
         gemini=Refused("messages.0.content")),
    part("file_id", {"type": "file", "file": {"file_id": "f"}}, Refused("messages.0.content.0.file.file_id")),
    part("input_audio", {"type": "input_audio", "input_audio": {"data": "x"}}, Refused("messages.0.content.0.type")),
    part("prompt_cache_breakpoint", {"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}},
         Unused("prompt_cache_breakpoint")),
]  # fmt: skip


# OpenAI's Responses API.


def responses(name: str, sends: Json, becomes: Any, **by_kind: Any) -> Row:  # noqa: ANN401 - see row
    return row("responses", name, sends, becomes, **by_kind)


def output(name: str, shown: object, becomes: Any, **by_kind: Any) -> Row:  # noqa: ANN401 - see row
    call = {"type": "function_call", "call_id": "t1", "name": "tide", "arguments": "{}"}
    items = [*HI, call, {"type": "function_call_output", "call_id": "t1", "output": shown}]
    return responses(f"function_call_output {name}", {"input": items}, becomes, **by_kind)


PLAIN = {"type": "function", "name": "tide", "parameters": SCHEMA}
RESPONSES = [
    responses("input text", {"input": "hi"}, {"messages.0.content.0.text": "hi"}, compatible={"messages.0.content": "hi"},
              gemini={"contents.0.parts.0.text": "hi"}),
    responses("instructions", {"instructions": "A"}, {"system.0.text": "A"}, compatible={"messages.0.content": "A"},
              gemini={"systemInstruction.parts.0.text": "A"}),
    responses("stream", {"stream": True}, {"stream": True}),
    responses("stream_options", {"stream_options": {"include_obfuscation": False, "x": 1}}, Refused("stream_options.x")),
    responses("max_output_tokens", {"max_output_tokens": 5}, {"max_tokens": 5}, gemini={"generationConfig.maxOutputTokens": 5}),
    responses("tools function", {"tools": [PLAIN]}, {"tools.0.name": "tide"}, compatible={"tools.0.function.name": "tide"},
              gemini={"tools.0.functionDeclarations.0.name": "tide"}),
    responses("tool_choice required", {"tools": [PLAIN], "tool_choice": "required"}, {"tool_choice": {"type": "any"}},
              compatible={"tool_choice": "required"}),
    responses("tool_choice named", {"tools": [PLAIN], "tool_choice": {"type": "function", "name": "tide"}},
              {"tool_choice": {"type": "tool", "name": "tide"}}, compatible={"tool_choice.function.name": "tide"}),
    responses("parallel_tool_calls", {"tools": [PLAIN], "parallel_tool_calls": False},
              {"tool_choice.disable_parallel_tool_use": True}, compatible={"parallel_tool_calls": False},
              gemini=Refused("parallel_tool_calls")),
    responses("temperature top_p", {"temperature": 0.5, "top_p": 0.5}, {"temperature": 0.5, "top_p": 0.5}),
    responses("reasoning.effort", {"reasoning": {"effort": "high"}}, {"output_config.effort": "high"},
              compatible={"reasoning_effort": "high"}, gemini={"generationConfig.thinkingConfig.thinking_level": "HIGH"}),
    *(responses(f"reasoning.{name}", {"reasoning": {name: "auto"}}, Unused(f"reasoning.{name}")) for name in ("summary", "context")),
    responses("reasoning.x", {"reasoning": {"x": 1}}, Refused("reasoning.x")),
    responses("include", {"include": ["reasoning.encrypted_content"]}, Unused("include.reasoning.encrypted_content")),
    responses("include x", {"include": ["file_search_call.results"]}, Refused("include")),
    responses("text.format", {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
              {"output_config.format.schema": SCHEMA}, compatible={"response_format.json_schema.schema": SCHEMA},
              gemini={"generationConfig.responseJsonSchema": SCHEMA}),
    responses("text.verbosity", {"text": {"verbosity": "low"}}, Unused("text.verbosity")),
    *(responses(name, {name: value}, Unused(name)) for name, value in {
        "prompt_cache_key": "k", "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "auto"},
        "client_metadata": {"a": "b"}, "metadata": {"a": "b"}, "user": "u", "safety_identifier": "u",
        "service_tier": "flex"}.items()),
    # Lamella itself stores what the upstream does not, so this is no unused field.
    responses("store false", {"store": False}, {"stream": True}),
    *(responses(name, {name: value}, Refused(name)) for name, value in {
        "conversation": "c", "prompt": {"id": "p"}, "background": True, "max_tool_calls": 3, "truncation": "auto",
        "top_logprobs": 2, "access_programs": ["x"], "context_management": [{"type": "compaction"}], "image": {"x": 1},
        "moderation": {"x": 1}, "x_unknown": 1}.items()),
    responses("previous_response_id", {"previous_response_id": "resp_nobody"}, NotFound()),
    # Items.
    responses("message", {"input": [{"type": "message", "role": "developer", "content": "A"}, *HI, {"type": "message",
              "role": "assistant", "id": "m", "status": "completed", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
              *HI]}, {"system.0.text": "A", "messages.1.content.0.text": "a"}, compatible={"messages.2.content": "a"}),
    responses("message.phase", {"input": [*HI, {"type": "message", "role": "assistant", "phase": "commentary", "content": "a"}, *HI]},
              Unused("input.phase")),
    responses("reasoning item", {"input": [*HI, {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"},
              {"role": "assistant", "content": "a"}, *HI]}, Unused("reasoning")),
    output("text", "noon", {"messages.2.content.0.content.0.text": "noon"}, compatible={"messages.2.content": "noon"}),
    output("image", [{"type": "input_image", "image_url": PICTURE}], {"messages.2.content.0.content.0.type": "image"},
           compatible={"messages.3.content.1.image_url.url": PICTURE},
           gemini={"contents.2.parts.0.functionResponse.parts.0.inline_data.mime_type": "image/png"}),
    output("file", [{"type": "input_file", "filename": "a.pdf", "file_data": PDF}],
           {"messages.2.content.0.content.0.type": "document"}, compatible={"messages.3.content.1.file.file_data": PDF}),
    responses("custom_tool_call", {"input": [*HI, {"type": "custom_tool_call", "call_id": "t", "name": "patch", "input": "x"},
              {"type": "custom_tool_call_output", "call_id": "t", "output": "done"}]},
              {"messages.1.content.0.input": {"input": "x"}}, compatible={"messages.1.tool_calls.0.function.name": "patch"}),
    responses("tool_search_call", {"input": [*HI, {"type": "tool_search_call", "call_id": "t", "execution": "client", "arguments": {}},
              {"type": "tool_search_output", "call_id": "t", "execution": "client", "tools": [PLAIN]}]},
              {"tools.0.name": "tide"}, compatible={"tools.0.function.name": "tide"}),
    *(responses(kind, {"input": [{"type": kind}]}, Refused("input.0.type")) for kind in (
        "file_search_call", "computer_call", "computer_call_output", "web_search_call", "additional_tools", "compaction",
        "configuration_update", "image_generation_call", "code_interpreter_call", "local_shell_call",
        "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output",
        "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call", "compaction_trigger",
        "item_reference", "program", "program_output")),
    responses("field of an item", {"input": [{"role": "user", "content": "hi", "x": 1}]}, Refused("input.0.x")),
    responses("async call", {"input": [{"type": "function_call", "call_id": "t", "name": "tide", "arguments": "{}", "async": True}]},
              Refused("input.0.async")),
    responses("input_image by file", {"input": [asked({"type": "input_image", "file_id": "f"})]}, Refused("input.0.content.0.file_id")),
    responses("input_image", {"input": [asked({"type": "input_image", "image_url": PICTURE, "detail": "low"})]},
              Unused("input_image.detail")),
    # Tools.
    responses("custom tool syntax", {"tools": [{"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark",
              "definition": "G"}}]}, Unused("tools.format.syntax")),
    responses("custom tool", {"tools": [{"type": "custom", "name": "patch", "format": {"type": "grammar", "definition": "G"}}]},
              {"tools.0.description": "G"}, compatible={"tools.0.function.description": "G"}),
    responses("namespace", {"tools": [{"type": "namespace", "name": "ns", "tools": [PLAIN]}]}, {"tools.0.name": "ns__tide"},
              compatible={"tools.0.function.name": "ns__tide"}),
    responses("tool_search", {"tools": [{"type": "tool_search", "execution": "client"}]}, {"tools.0.name": "tool_search"},
              compatible={"tools.0.function.name": "tool_search"}),
    responses("web_search", {"tools": [{"type": "web_search"}]}, Unused("tools.web_search")),
    responses("web_search forced", {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
              Refused("tools.0.type")),
    responses("defer_loading", {"tools": [PLAIN | {"defer_loading": True}]}, Unused("tools.defer_loading")),
    *(responses(f"{kind} tool", {"tools": [{"type": kind}]}, Refused("tools.0.type")) for kind in (
        "file_search", "computer", "mcp", "code_interpreter", "image_generation", "local_shell", "shell", "apply_patch")),
]  # fmt: skip
ROWS = [*MESSAGES, *CHAT, *RESPONSES]


def post(server: RunningServer, one: Row) -> Any:  # noqa: ANN401 - a response
    data = json.dumps(body_for(one.wire, HI) | one.sends, indent=1).encode()
    return server.client.post(PATHS[one.wire], content=data, headers={"content-type": "application/json"}), data


@pytest.mark.parametrize("wire", PATHS)
def test_upstream_of_the_same_api_gets_every_field_byte_for_byte(wire: str) -> None:
    wrong = []
    with upstream_of(OWN[wire]) as (server, seen):
        for one in (one for one in ROWS if one.wire == wire):
            answer, data = post(server, one)
            sent = seen.calls[-1].raw.replace(b'{"cache_control":{"type":"ephemeral"},', b"{", 1)
            if answer.status_code != 200 or sent != data.replace(b'"lamella"', b'"scripted:tides"'):
                wrong.append((one.name, answer.status_code, answer.text[:200], sent))
            if "x-lamella-note" in answer.headers:
                wrong.append((one.name, "note", answer.headers["x-lamella-note"], b""))
    assert wrong == []


PAIRS = [(wire, kind) for wire, kinds in OTHERS.items() for kind in (*kinds, "gemini")]


@pytest.mark.parametrize(("wire", "kind"), PAIRS)
def test_upstream_of_another_api_gets_a_translation_or_a_refusal_names_the_field(wire: str, kind: str) -> None:
    with upstream_of(kind) as (server, seen):
        checked = [(one, one.expected(kind)) for one in ROWS if one.wire == wire]
        wrong = [
            (one.name, found)
            for one, expected in checked
            if expected is not None and (found := _find_wrong(server, seen, one, expected))
        ]
    assert wrong == []


def _find_wrong(server: RunningServer, seen: Loopback, one: Row, expected: Becomes) -> str | None:
    before = len(seen.calls)
    answer, _ = post(server, one)
    if isinstance(expected, Refused):
        error = answer.json().get("error", {})
        found = (answer.status_code, error.get("type"), error.get("param"), len(seen.calls) - before)
        return None if found == (400, "invalid_request_error", expected.param, 0) else f"{found} {answer.text[:200]}"
    if isinstance(expected, NotFound):
        return None if answer.status_code == 404 else answer.text
    if answer.status_code != 200:
        return f"{answer.status_code} {answer.text[:300]}"
    noted = answer.headers.get("x-lamella-note", "").removeprefix("unused: ").split(", ")
    if isinstance(expected, Unused):
        return None if expected.name in noted else f"note {noted}"
    body = seen.calls[-1].body
    for path, value in expected.values.items():
        try:
            got = reduce(lambda at, name: at[int(name)] if isinstance(at, list) else at[name], path.split("."), body)
        except (KeyError, IndexError, TypeError):
            return f"{path} is not in {json.dumps(body)[:600]}"
        if value is not ... and got != value:
            return f"{path} is {got!r}"
    return None


SDK_TYPES: dict[str, Any] = {
    "messages": MessageCreateParamsBase,
    "chat": CompletionCreateParamsBase,
    "responses": ResponseCreateParamsBase,
}


@pytest.mark.parametrize("wire", PATHS)
def test_every_field_of_the_sdk_has_a_row(wire: str) -> None:
    named = {name for one in ROWS if one.wire == wire for name in one.sends} | {
        "model",
        "messages",
        "input",
        "max_tokens",
    }
    assert set(SDK_TYPES[wire].__annotations__) - named == set()
