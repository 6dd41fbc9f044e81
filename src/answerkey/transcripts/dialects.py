"""The words of the dialects: what each format calls its roles, its messages and the parts of a message.

A new format is a row or two here. No word means two things, so that a message is read by what stands in it and not by
guessing first which format it is in.
"""

from typing import Literal

from answerkey.model.message import Role

# How a part is read: see message_reading.
PartWord = Literal["text", "call", "result", "hosted", "ui-call", "source", "step", "thought", "aside"]

# The values of `role`.
ROLES: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "ROLE_USER", "USER", "HUMAN"), "user"),
    **dict.fromkeys(("assistant", "model", "ai", "bot", "agent", "ROLE_AGENT", "ASSISTANT"), "assistant"),
    **dict.fromkeys(("chatbot", "CHATBOT", "tool-call", "MODEL", "AI"), "assistant"),
    **dict.fromkeys(("tool", "function", "TOOL", "tool-response", "ipython"), "tool"),
    **dict.fromkeys(("system", "developer", "SYSTEM", "activity"), "system"),
}


# The values of `type`, of `kind`, and the classes of messages that have no role.
MESSAGE_TYPES: dict[str, Role] = {
    # LangChain.
    **dict.fromkeys(("human", "HumanMessage", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("ai", "AIMessage", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("tool", "ToolMessage", "ToolMessageChunk", "function", "FunctionMessage"), "tool"),
    **dict.fromkeys(("system", "SystemMessage", "SystemMessageChunk", "remove", "RemoveMessage"), "system"),
    # Claude Agent SDK, as objects and as lines.
    **dict.fromkeys(("UserMessage", "user"), "user"),
    **dict.fromkeys(("AssistantMessage", "assistant"), "assistant"),
    **dict.fromkeys(("ResultMessage", "result"), "assistant"),
    **dict.fromkeys(("StreamEvent", "stream_event", "RateLimitEvent", "rate_limit_event"), "system"),
    **dict.fromkeys(("TaskStartedMessage", "TaskProgressMessage", "TaskNotificationMessage"), "system"),
    # Pydantic AI.
    **dict.fromkeys(("request", "ModelRequest"), "user"),
    **dict.fromkeys(("response", "ModelResponse"), "assistant"),
    # AutoGen: who says a TextMessage is told by its source.
    **dict.fromkeys(
        ("TextMessage", "MultiModalMessage", "ToolCallSummaryMessage", "HandoffMessage"), "assistant"
    ),
    "ToolCallRequestEvent": "assistant",
    "ToolCallExecutionEvent": "tool",
    **dict.fromkeys(
        ("ThoughtEvent", "MemoryQueryEvent", "ModelClientStreamingChunkEvent", "StopMessage"), "system"
    ),
    **dict.fromkeys(("SelectSpeakerEvent", "SelectorEvent", "UserInputRequestedEvent"), "system"),
}

# How the items of a message's content are read where they do not say it themselves.
ITEMS: dict[str, PartWord] = {"ToolCallRequestEvent": "call", "ToolCallExecutionEvent": "result"}

# The values of a part's `type`, `kind`, `part_kind` or `block_type`, and the classes of parts.
PARTS: dict[str, PartWord] = {
    **dict.fromkeys(("text", "output_text", "input_text", "refusal", "TextBlock", "user-prompt"), "text"),
    **dict.fromkeys(("tool_use", "server_tool_use", "mcp_tool_use", "ToolUseBlock"), "call"),
    **dict.fromkeys(("ServerToolUseBlock", "tool_call", "tool-call", "builtin-tool-call"), "call"),
    **dict.fromkeys(("server_tool_call", "function_call", "custom_tool_call", "mcp_call"), "call"),
    **dict.fromkeys(("FunctionCall", "tool_call_block", "invalid_tool_call"), "call"),
    **dict.fromkeys(("tool_result", "tool-result", "tool-error", "ToolResultBlock"), "result"),
    **dict.fromkeys(("ServerToolResultBlock", "tool_call_response", "server_tool_call_response"), "result"),
    **dict.fromkeys(("tool-return", "builtin-tool-return", "retry-prompt"), "result"),
    **dict.fromkeys(("FunctionExecutionResult", "function_call_output", "custom_tool_call_output"), "result"),
    **dict.fromkeys(("tool-invocation", "dynamic-tool"), "ui-call"),
    **dict.fromkeys(("source", "source-url", "source-document", "search_result"), "source"),
    "step-start": "step",
    # Thoughts.
    **dict.fromkeys(("reasoning", "thinking", "redacted_thinking", "ThinkingBlock", "thought"), "thought"),
    **dict.fromkeys(("reasoning_text", "summary_text"), "thought"),
    # What is shown or sent along.
    **dict.fromkeys(
        ("image", "image_url", "input_image", "image_file", "input_file", "file", "audio"), "aside"
    ),
    **dict.fromkeys(("input_audio", "output_audio", "video", "document", "media", "blob", "uri"), "aside"),
    **dict.fromkeys(("container_upload", "image-url", "binary", "custom-source", "resource_link"), "aside"),
    # What is arranged between a model and its host.
    **dict.fromkeys(("system-prompt", "instruction", "item_reference", "mcp_list_tools"), "aside"),
    **dict.fromkeys(("compaction", "reasoning-file"), "aside"),
    **dict.fromkeys(("mcp_approval_request", "mcp_approval_response", "input_json_delta"), "aside"),
    **dict.fromkeys(("tool-approval-request", "tool-approval-response", "tool_call_chunk"), "aside"),
}
# Parts that have no type: the field that they hold says what they are (Gemini, Bedrock, A2A).
KEYED_PARTS: dict[str, PartWord] = {
    **dict.fromkeys(("functionCall", "function_call", "toolUse", "toolCall", "tool_call"), "call"),
    **dict.fromkeys(("functionResponse", "function_response", "toolResult"), "result"),
    **dict.fromkeys(("toolResponse", "tool_response"), "result"),
    **dict.fromkeys(("executableCode", "executable_code"), "call"),
    **dict.fromkeys(("codeExecutionResult", "code_execution_result"), "result"),
    "text": "text",
    "reasoningContent": "thought",
    **dict.fromkeys(("inlineData", "inline_data", "fileData", "file_data"), "aside"),
    **dict.fromkeys(("image", "document", "video", "cachePoint", "guardContent", "thought"), "aside"),
    **dict.fromkeys(("thoughtSignature", "thought_signature", "file", "raw", "url"), "aside"),
}


def part_word(kind: str) -> PartWord | None:
    """How a part that calls itself `kind` is read; None if nobody knows."""
    word = PARTS.get(kind)
    if word is not None:
        return word
    if kind.endswith(("_tool_result", "_call_output")):
        return "result"
    if kind.endswith("_call"):
        # A hosted tool of the Responses API: the item is called after it.
        return "hosted"
    if kind.startswith("tool-"):
        # The AI SDK's UI messages: the part is called after the tool.
        return "ui-call"
    return "aside" if kind.startswith("data-") else None
