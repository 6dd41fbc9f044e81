"""The settings of a chatbot behind an address, as `[targets.NAME]` has them."""

from typing import Any

import msgspec

from answerkey.targets.http_login import LoginSettings
from answerkey.transcripts.plain_json import MOST_MEGABYTES
from answerkey.transcripts.reply_mapping import ReplyMapping


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of an HTTP target; `${ENV}` is expanded in its url, headers, query and body when it opens."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    query: dict[str, Any] = {}
    # The request's JSON, with "{{question}}" and the like in it; JSON text is taken too.
    body: dict[str, Any] | list[Any] | str | None = None
    # Where the reply has its parts, when not under the usual names.
    reply: ReplyMapping | None = None
    # False: accept any certificate (a test server's own).
    verify_tls: bool = True
    # A PEM file with the authority that signed the server's certificate.
    ca_file: str | None = None
    # A reply that is larger is a failure.
    max_reply_mb: float = MOST_MEGABYTES
    # False, for a chatbot that must never get a question twice: each has a connection of its own.
    retry_reused: bool = True
    # A request before the first question that gives a token or cookies.
    login: LoginSettings | None = None
    # Of a WebSocket, which message is the last of a reply, in JMESPath; None: every message is a reply.
    last: str | None = None
