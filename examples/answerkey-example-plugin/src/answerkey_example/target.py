"""The target `canned:TEXT`: a chatbot that always says the same."""

from answerkey import Evidence, Reply
from answerkey.protocols import Ask


class Canned:
    """Anything with a name, a fingerprint, `ask` and the two methods of an asynchronous context manager is a target."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.name = "canned"
        # Replies are kept by it: another text is another chatbot.
        self.fingerprint = f"canned/{text}"

    async def __aenter__(self) -> "Canned":
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def ask(self, ask: Ask) -> Reply:
        return Reply(text=self.text, evidence=Evidence(tools_observed=True))


def make_canned(text: str) -> Canned:
    """Called with what stands behind the colon of `--target canned:TEXT`."""
    return Canned(text)
