"""The names by which a reply is known: those that its text stands under, and the marks of known formats."""

from answerkey.model.json_value import JsonObject

__all__ = ["FORMAT_MARKS", "TEXT_NAMES", "has_reply_names"]

TEXT_NAMES = (
    *("answer", "response", "text", "output", "message", "content", "reply"),
    *("output_text", "final_answer"),
)
# A payload with none of these names can only be in a format if its text field is not text.
FORMAT_MARKS = frozenset(
    {
        # OpenAI, Gemini, Ollama and MCP.
        *("choices", "object", "candidates", "promptFeedback", "prompt_feedback", "contents", "done"),
        *("isError", "jsonrpc", "structuredContent", "structured_content"),
        # Transcripts, LangChain, LangGraph and LangSmith.
        *("messages", "lc", "response_metadata", "values", "run_type"),
        *("gen_ai.input.messages", "gen_ai.output.messages"),
        # The AI SDK, CrewAI and A2A.
        *("parts", "steps", "finishReason", "toolInvocations", "tasks_output"),
        *("contextId", "context_id"),
        # Inspect and ADK.
        *("samples", "conversation", "eval_cases", "evalCases"),
        *("final_response", "finalResponse", "intermediate_data", "intermediateData"),
    }
)


def has_reply_names(value: JsonObject) -> bool:
    """Whether an object can be a reply: it has a text under a usual name, or a format's mark."""
    return any(name in value for name in TEXT_NAMES) or not value.keys().isdisjoint(FORMAT_MARKS)
