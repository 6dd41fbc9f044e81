"""The APIs by the names under which the configuration knows them."""

from answerkey.providers.anthropic_messages import ANTHROPIC
from answerkey.providers.gemini import GEMINI
from answerkey.providers.model_api import ModelApi
from answerkey.providers.ollama_chat import OLLAMA
from answerkey.providers.openai_chat import OPENAI_CHAT
from answerkey.providers.openai_responses import OPENAI_RESPONSES

KNOWN_APIS: dict[str, ModelApi] = {
    "openai": OPENAI_CHAT,
    "openai-responses": OPENAI_RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "ollama": OLLAMA,
}
