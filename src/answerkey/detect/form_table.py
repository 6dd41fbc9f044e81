"""Forms of replies that are certainly errors, whatever the question was: each has an example, and each example is a test.

A form is an RE2 pattern. Case is ignored, ’ is read as ', and marks and emoji around the reply are ignored.
Add a form only if you would be sure of it in any chatbot; what is merely likely is left to the fitted model.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import msgspec
import re2

from answerkey.text.patterns import lazy

# Spaces, invisible characters and punctuation.
NOTHING = lazy(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff.…·\\-–—_*#`\"'~|>?!,;:()<=+/\\\\]*"
)
UNDECODED = lazy("[\ufffd\x00-\x08\x0e-\x1a]")
MOJIBAKE = lazy(
    "[ÐÑ][^\\sA-Za-zÀ-ÿ]|[ÐÑ][°±²³´µ¶·¸¹º»¼½¾¿]|Ã[\x80-\xbf¡-¿ƒ‚„…†‡‰‹Œ]|â€[™œ\x9d“”¦˜]|ã[\x80-\xbf]{2}|æ[\x80-\xbf]{2}"
)
# Words by which an answer speaks about an error, and marks of code.
EXPLAINS = lazy(
    r"""(?x)
  \b(?:you\ can | to\ fix | fixed | fix: | means? | meant | usually | typically | often | every | when\ you
    | if\ you\ see | because\ you | most\ common
    | is\ an?\ (?:\w+\ )?(?:message|error|status|code|sign|term)
    | here\ is | here\ are | here's | instead | step\ \d | rate\ of | budget | in\ english | headline | translat\w*
    | betekent | bedeutet | signifi\w+ | vuol\ dire | означа\w+ | oznacza | znamen\w+ | betyder | tarkoittaa
    | jelent\w* | demek | artinya | nghĩa
    | (?:mon|tues|wednes|thurs|fri|satur|sun)days? | weekends? | midnight | noon
    | (?:mon|diens|donners|frei|sams|sonn)tags? | mittwochs? | wochenendes? | feiertags?
    | lundis? | mardis? | mercredis? | jeudis? | vendredis? | samedis? | dimanches? | lunes | martes | miércoles
    | jueves | viernes | sábados? | domingos?
    | lunedì | martedì | mercoledì | giovedì | venerdì | sabato | domenica | maandag | dinsdag | woensdag | donderdag
    | vrijdag | zaterdag | zondag
    | your\ (?:router|browser|phone|printer|device|card|password|computer|payment|bank)
  )\b | = | ``` | 意味 | 就是 | 是指 | 뜻 | يعني | משמע"""
)
# What machines write of failures: names of exceptions, error codes, HTTP statuses.
FAILURE_TOKEN = lazy(
    r"""(?x)
  \b[A-Za-z_$][\w$]*(?:(?:\.|::|\\|/)[A-Za-z_$][\w$]*)*[a-z0-9](?:Error|Exception|Fault|Failure|Timeout|Rejection)\b
  | \b(?:Error|Exception)(?=[:(])
  | \bE[A-Z]{4,}\b | \bERR_[A-Z_]+\b | \b[A-Z]{2,}(?:_[A-Z]{2,})+\b | \b[A-Z]{2,4}-\d{3,6}\b | \b0x[0-9A-Fa-f]{4,}\b
  | (?i:\bhttps?(?:/[\d.]+)?\b)
  | (?<![\d.,$€£#/-])[45]\d\d(?![\d%€]|[.,]\d|\ ?(?i:k?g|km|ml|eur|usd|euros?|dollars?)\b)"""
)
# What else machines write: addresses, paths, identifiers.
OTHER_TOKEN = lazy(
    r"""(?x)
  https?://\S+ | \S+@\S+\.\w+ | \b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)? | \b[\w-]+(?:\.[\w-]+)+(?::\d{2,5})?\b
    | \blocalhost(?::\d+)?\b | \bport\ \d+\b
  | (?<=\s)/[\w./-]+
  | \b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])\w+(?:-\w+)*\b | \b[a-z]+(?:_[a-z0-9]+)+\b | \b[a-z]+(?:[A-Z][a-z0-9]+)+\b
  | `[^`\n]+` | '[\w./-]+' | \#\w+ | \(ref[^)]*\)"""
)


class Form(msgspec.Struct, frozen=True):
    """A form that some replies have which are errors."""

    form: str
    examples: tuple[str, ...]
    kind: str = "error_text"
    # A reply in which this occurs is not of the form.
    unless: str = ""
    # Whether capitals matter.
    case: bool = False
    # Below 1: suspected only.
    probability: float = 1.0
    # A longer reply does not have it, if it is a form inside replies.
    longest: int = 2000

    def excepts(self, text: str) -> bool:
        """Whether a reply has what no reply of the form has."""
        return bool(self.unless) and compile_form(self.unless).search(text) is not None


class Bodies(msgspec.Struct, frozen=True):
    """JSON bodies that report an error or should have stayed inside the chatbot, by their keys."""

    error_keys: frozenset[str]
    beside_error: frozenset[str]
    status_keys: tuple[str, ...]
    failed_states: frozenset[str]
    failing_message: str
    raw_calls: tuple[frozenset[str], ...]
    error_examples: tuple[str, ...]
    call_examples: tuple[str, ...]

    def reports_error(self, fields: dict[str, Any]) -> bool:
        """Whether a body does nothing but report an error."""
        keys = fields.keys()
        if not keys <= self.error_keys | self.beside_error:
            return False
        message = fields.get("message", fields.get("detail", "")) if len(fields) == 1 else ""
        states = [str(fields.get(key)).lower() for key in self.status_keys]
        return (
            any(fields[key] and not isinstance(fields[key], int) for key in keys & self.error_keys)
            or fields.get("success", True) is False
            or fields.get("ok", True) is False
            or fields.get("is_error") is True
            or any(state in self.failed_states or _is_http_error(state) for state in states)
            or compile_form(self.failing_message).search(str(message)) is not None
        )

    def is_raw_call(self, fields: dict[str, Any]) -> bool:
        """Whether a body is a message or a tool call of the chatbot's own machinery."""
        keys = fields.keys()
        return any(call <= keys for call in self.raw_calls) and keys.isdisjoint({"answer", "response"})


class FormTable(msgspec.Struct, frozen=True):
    """All forms."""

    whole: tuple[Form, ...]
    whole_unless: str
    inside: tuple[Form, ...]
    inside_unless: str
    inside_marks: str
    bodies: Bodies


@cache
def compile_form(pattern: str, case: bool = False) -> Any:
    """A compiled RE2 pattern."""
    return re2.compile(pattern, _options(case))


def compile_set(patterns: Iterable[str]) -> Callable[[bytes], list[int] | None]:
    """A function that gives the numbers of the patterns that occur in a text in UTF-8, found in one pass."""
    found = re2.Set.SearchSet(_options(case=False))
    for pattern in patterns:
        found.Add(pattern)
    found.Compile()
    match: Callable[[bytes], list[int] | None] = found.Match
    return match


def _options(case: bool) -> Any:
    options = re2.Options()
    options.case_sensitive, options.log_errors = case, False
    # Groups are never read; without them RE2 needs one pass.
    options.never_capture, options.max_mem = True, 64 << 20
    return options


def _is_http_error(code: str) -> bool:
    return len(code) == 3 and code.isdecimal() and code[0] in "45"


FORM_TABLE = FormTable(
    # The whole reply is one of these. `unless`: not if this occurs in the reply. `probability`: suspected, not charged.
    whole=(
        # Nothing
        Form(
            r"null(\W+null)*|nil|nullptr|undefined(\W+undefined)*|nan(\W+nan)*",
            kind="null",
            unless="^none$",
            examples=("null", "null, null", "undefined", "NaN", "<nil>"),
        ),
        Form("None", kind="null", case=True, probability=0.6, examples=("None",)),
        Form(
            r"\(?(no|empty) (response|reply|output|content|answer)( (from|by) (the )?(model|assistant|bot|server))?\)?|no_answer_generated|no (response|reply|output) (was )?(generated|received|returned|produced)( (by|from) (the )?(model|assistant|bot|server))?",
            kind="null",
            examples=(
                "(no response)",
                "<no response>",
                "(empty response from model)",
                "No response generated",
            ),
        ),
        Form(
            r"((final )?(answer|response|reply|output|result)|assistant|bot|ai|system)[*_ ]*[:>][\s*_]*",
            kind="empty",
            examples=("Final Answer:", "**Assistant:**"),
        ),
        Form(
            r"(</?(p|br|div|span|em|b|i|strong|html|head|body|ul|ol|li|h[1-6]|pre|code)\b[^<>\n]*>|&(nbsp|#160|#xa0);|\s)+",
            kind="empty",
            examples=("<p>&nbsp;</p>",),
        ),
        Form(r"\{\s*\}|\[\s*\]", kind="null", probability=0.6, examples=("{}", "[]")),
        # HTTP
        Form(
            r"(error|fehler|erreur|erro|errore|ошибка|错误|エラー|오류)?[:#\s]*(http(/[\d.]+)?[\s:]*)?(error|status|status code|code|error code|code d'erreur|fehlercode)?[:#\s-]*[45]\d\d[\s:\-–—|,(]*(bad request|unauthori[sz]ed|payment required|forbidden|(page |file )?not found|method not allowed|not acceptable|request time-?out|conflict|gone|payload too large|request entity too large|uri too long|unsupported media type|unprocessable (entity|content)|too many requests|internal( server)? error|server error|not implemented|bad gateway|service( is)?( temporarily| currently)? unavailable|gateway time-?out|web server is (down|returning an unknown error)|origin (is unreachable|error)|a time-?out occurred|proxy error|client closed request|insufficient storage|network authentication required|overloaded)(\W[^\n]*)?(\n(server|content-\S+|retry-after|date|connection|via|x-\S+|cf-\S+|cache-\S+|transfer-\S+|location)[^\n]*)*",
            kind="error_text",
            unless=r"means|indicates|happens when|usually|(error|status|response) code for|caused by|occurs when|appears when|^\W*[45]\d\d (not found|gone) (lost )?(items|people)",
            examples=(
                "502 Bad Gateway",
                "504 Gateway Time-out",
                "404 Not Found",
                "403 Forbidden",
                "401 Unauthorized",
                "Error 403: Forbidden - the bot may not read /orders",
                "HTTP/1.1 502 Bad Gateway\nServer: nginx",
                "404 page not found",
            ),
        ),
        Form(
            r"(http[\s:/_-]*(status|error|code|status code)?|(request failed with )?status( code)?|error( code)?|server error|fehler|erreur)[:#\s=]*[45]\d\d( error)?",
            kind="error_text",
            unless=r"^(error|error code|fehler|erreur)[:#\s=]*4[1-9]\d$",
            examples=("HTTP 500", "HTTP ERROR 500", "Error 500", "status code: 503"),
        ),
        Form(
            "bad gateway|gateway time-?out|internal( server)? error|forbidden|unauthori[sz]ed|service( temporarily)? unavailable|too many requests|request time-?out|proxy error|server error|network error|application error|unknown error|unexpected error|connection (error|refused|reset( by peer)?|timed out|aborted|lost|failed)|access denied",
            kind="error_text",
            examples=(
                "Bad Gateway",
                "Gateway Timeout",
                "Forbidden",
                "Unauthorized",
                "Internal Server Error",
                "Network error",
            ),
        ),
        Form(
            r"[45]\d\d",
            kind="error_text",
            unless=r"4[1-9]\d|5[1-9]\d|40[5-9]|50[15-9]",
            probability=0.55,
            examples=("500", "404"),
        ),
        Form(
            r"(error: )?(request( to \S+)?|call|api call|http request) failed with (http )?(status |error )?(code )?:?[45]\d\d(\s[^\n]*)?",
            kind="error_text",
            examples=(
                "Error: Request failed with status code 401",
                "Request to https://api.example/v1/chat failed with status 403 Forbidden",
            ),
        ),
        Form(
            r"(?s)(<\?xml[^>]*>\s*)?(<!doctype html[^>]*>\s*)?(<html\b.*)?<(title|h1|h2)>[^<]*(\b[45]\d\d\b|error|not found|forbidden|unauthorized|bad gateway|unavailable|time-?out)[^<]*</.*",
            kind="error_text",
            unless="```",
            examples=(
                "<html><head><title>503 Service Temporarily Unavailable</title></head><body>nginx</body></html>",
                "<!DOCTYPE html><html><body><h1>Not Found</h1><p>The requested URL was not found on this server.</p></body></html>",
            ),
        ),
        Form(
            r"http/[\d.]+ [45]\d\d( [a-z ]+)?(\n[\w-]+: ?[^\n]*)*|(?s)(<\?xml[^>]*>\s*)?<(\w+:)?envelope\b.*<(\w+:)?fault\b.*",
            kind="error_text",
            examples=(
                "HTTP/2 502\ncontent-type: text/html\ncontent-length: 0",
                "<soap:Envelope><soap:Body><soap:Fault><faultcode>soap:Server</faultcode></soap:Fault></soap:Body></soap:Envelope>",
            ),
        ),
        Form(
            r"https?connectionpool\(host=[^\n]+|\[errno -?\d+\] [^\n]+",
            kind="error_text",
            examples=(
                "HTTPSConnectionPool(host='erp.internal', port=443): Read timed out. (read timeout=60)",
                "[Errno 104] Connection reset by peer",
            ),
        ),
        # Traces: every line is one of a trace
        Form(
            r"traceback \(most recent call last\):(\n[ \t].*|\ntraceback \(most recent call last\):|\n\s*|\n[\w.]+(error|exception|exit|interrupt|warning|iteration|timeout)?(:.*)?|\n(during handling|the above exception)\b.*)+",
            kind="trace",
            examples=(
                'Traceback (most recent call last):\n  File "/app/bot.py", line 88, in reply\n    return data["text"]\nKeyError: \'text\'',
            ),
        ),
        Form(
            r"([^\n]+\n){1,4}([ \t]+(at|from|in) (async |new )?\S*( \(|[(.:/\\$<])[^\n]*\n?|(at|from|in) \S+( ?\([^\n]*)?:\d+[^\n]*\n?|at [\w.$]+\((native method|unknown source)\)\n?|\s*(\.\.\. \d+ more|caused by:|--- end|---> )[^\n]*\n?|\s*\n)+",
            kind="trace",
            examples=(
                "java.lang.IllegalStateException: closed\n\tat a.Pool.get(Pool.java:41)\n\tat a.Main.main(Main.java:9)",
                "TypeError: Cannot read properties of undefined (reading 'content')\n    at formatReply (/srv/chat/index.js:41:23)",
            ),
        ),
        Form(
            r"([^\n]+\n){1,3}(\S+\.(rb|erb|php|pl|lua|go|rs|ex|exs)(:|\()\d+[^\n]*\n?)+|((?i)(php )?(fatal )?error)[^\n]+(\n(?i)stack trace:)?(\n#\d+ [^\n]*|\n\s+thrown in [^\n]*)+|panic: [^\n]*\n(.*\n?)*goroutine \d+ \[[^\n]*\n?(.*\n?)*|thread '[^'\n]*' panicked at [^\n]*(\n[^\n]*){0,6}|undefined (local variable or )?method `\w+[?!]?' for [^\n]+|[A-Z]\w+(::[A-Z]\w+)+ \([^\n]+(\n.*)*",
            kind="trace",
            case=True,
            examples=(
                "panic: runtime error: index out of range [0] with length 0\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:19 +0x1d",
                "thread 'main' panicked at src/main.rs:22:45:\ncalled `Result::unwrap()` on an `Err` value",
                "NameError: uninitialized constant Tools::Lookup\n/app/lib/registry.rb:24:in `const_get'\n/app/lib/session.rb:66:in `run'",
            ),
        ),
        # System error lines: one line, nothing but the error
        Form(
            r"(error|fehler|erreur|errore|erro|ошибка|エラー|错误|錯誤|오류|hata|błąd|virhe|fejl|feil|fout)((:\s*)?(unknown|error|undefined|null))*|(error|err|fehler)[\s:-]*(code|id|no\.?)?[:\s#-]*[A-Z]{1,6}[-_]?\d{2,6}|\[(error|fatal|critical)\] [^\n]+|(error|fatal|critical)[\s:|]+\d{4}-\d\d-\d\d[^\n]+|\d{4}-\d\d-\d\d[t ]\d\d:\d\d\S*\s+\[?(error|fatal|critical)\b[^\n]+",
            kind="error_text",
            examples=(
                "Error",
                "Error: unknown",
                "Error code: INT-5003",
                "[ERROR] 2025-05-06T07:41:22Z worker-2 EmbeddingDimensionMismatch",
            ),
        ),
        Form(
            r"""no module named '[\w.]+'|cannot (get|post|put|delete) /\S*|unknown (tool|function)( requested( by model)?)?: \S+|invalid arguments for (tool|function) [^\n]+|missing required (parameter|argument|property) [^\n]+|mcp error -?\d+[^\n]*|mcp server '?[\w-]+'? exited[^\n]*|(javascript )?heap out of memory|[^\n]*allocation failed - javascript heap out of memory|allowed memory size of \d+ bytes exhausted[^\n]*|oomkilled|(process |container |killed\W+)?exit(ed with)? (code|status) [1-9]\d*( \(oom\))?|model '[^'\n]+' (does not exist|not found|is (currently )?loading)[^\n]*|(authentication|authorization|login) failed( for (user )?'?\S+)?|access token (has )?expired[^\n]*|not authenticated|terminate called after throwing [^\n]+(\n[^\n]*)*|curl error \d+: [^\n]+|peer closed connection[^\n]*|execution timeout expired[^\n]*|warning: mysqli?_\w+\(\)[^\n]*|an error occurred \(\w+\) when calling the \w+ operation[^\n]*|requests to the \w+ operation [^\n]+ have exceeded [^\n]+|invalid api key provided[^\n]*|the request signature [^\n]+ does not match[^\n]*|request (was )?blocked by (the )?security policy[^\n]*|deadline exceeded( while [^\n]+)?|quota exceeded for [^\n]+|billing hard limit has been reached|post "https?://[^\n]+|(?s)(<\?xml[^>]*>\s*)?<(api)?error\b.*</(api)?error>""",
            kind="error_text",
            unless=r"\b(means|usually|you can|to fix|because your)\b",
            examples=(
                "No module named 'pandas'",
                "Cannot GET /api/v1/chat",
                "Unknown tool: search_docs",
                "JavaScript heap out of memory",
                "Authentication failed for user 'bot_reader'.",
                "Process exited with code 1",
                "<Error><Code>AccessDenied</Code></Error>",
            ),
        ),
        Form(
            r"""(error[:\s]+|fatal[:\s]+|uncaught[:\s]+|\S+error[:\s]+|net::)?((request|connection|dial|connect|read|write|getaddrinfo|queryA|spawn|npx|node|curl|fetch|socket|syscall|open|listen|failed|to|fetch failed|cause|reason)[:\s(]+)*(ECONNREFUSED|ECONNRESET|ECONNABORTED|ETIMEDOUT|ESOCKETTIMEDOUT|ENOTFOUND|EAI_AGAIN|EPIPE|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|EADDRINUSE|EMFILE|ENOMEM|ENOSPC|EACCES|ENOENT|EPROTO|ERR_[A-Z_]{4,60}|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED|UNAVAILABLE_ERROR)([\s:,(]+(\d[\d.:]*|\[[^\]\n]*\](:\d+)?|[\w-]+(\.[\w-]+)+(:\d+)?|[\w-]+:\d+|[\w.-]+|[/'"]\S+)){0,2}""",
            kind="error_text",
            unless=r"\b(means|is an?|is the|because|code|indicates)\b",
            examples=(
                "connect ECONNREFUSED 127.0.0.1:5432",
                "ECONNRESET",
                "getaddrinfo ENOTFOUND bot-backend",
                "net::ERR_INTERNET_DISCONNECTED",
            ),
        ),
        Form(
            r"(panic|fatal|fatal error|php fatal error|unhandled (exception|promise rejection)|uncaught( (error|exception|in promise))?|unhandledpromiserejection\w*|exception|rejected)[.:]\s[^\n]+|segmentation fault( \(core dumped\))?|core dumped|bus error|killed|stack overflow|out of memory(: [^\n]*)?",
            kind="error_text",
            unless=r"means|\b(is|are) (raised|thrown|caused)|^killed$|^stack overflow$|^fatal: [a-z]+ (crash|accident|attack|shooting|fire)",
            examples=(
                "Segmentation fault (core dumped)",
                "PHP Fatal error:  Uncaught Error: Call to a member function getText() on null in /var/www/chat.php:64",
            ),
        ),
        Form(
            r"(error|exception|fatal|failure)?[:\s]*(in |at )?[A-Za-z_$][\w$]*([.\\/]|::)?([\w$]+([.\\/]|::))*[\w$]*[a-z0-9_](Error|Exception|Timeout|Fault|Failure|Throwable|Rejection)(\s\(\w{3,60}\))?(:\s[^\n]+(\n.*)*)?",
            kind="error_text",
            unless=r"\b(means|is raised|is thrown|raised when|thrown when|occurs|happens|indicates|usually|because you|you can|try (changing|adding|using)|to fix|fix:|caused by (a|your|the)|explains|comes from|on line \d+ of your|your code|your script)\b|^[^:]*\s(error|exception|timeout|fault|failure)\b",
            case=True,
            examples=(
                "sqlite3.OperationalError: database is locked",
                "TypeError: Failed to fetch",
                "openai.RateLimitError: Error code: 429 - {'error': {'message': 'quota'}}",
                "ReadTimeout: HTTPSConnectionPool(host='llm.example.net', port=443): Read timed out.",
            ),
        ),
        Form(
            r"(error|fehler) code: \d{3,5}( - .*)?|ora-\d{5}: [^\n]+|sqlstate\[\w+\][^\n]*|(error:\s+)(relation|column|function|table|database|role|permission|duplicate|null value|syntax error|invalid input|could not|canceling|deadlock|out of|too many)\b[^\n]+(\n(line \d+:|detail:|hint:|\s+\^|select|where)[^\n]*)*|you have an error in your sql syntax[^\n]*|(lost|can't) connect(ion)? to (local )?mysql server[^\n]*|curl: \(\d+\) [^\n]+|(mysql|pg|sqlite|mongo|redis|odbc)\w*: [^\n]+(refused|denied|timed out|lost|closed|failed)[^\n]*",
            kind="error_text",
            unless=r"\b(means|says|usually|most often)\b",
            examples=(
                "ORA-12541: TNS:no listener",
                "SQLSTATE[HY000] [2002] Connection refused",
                "curl: (7) Failed to connect to localhost port 8080: Connection refused",
                "Error code: 529 - {'type': 'error'}",
                'ERROR:  relation "faq" does not exist',
            ),
        ),
        Form(
            r"(error[:\s]+)?(upstream (connect error|request timeout|prematurely closed)[^\n]*|no healthy upstream|context deadline exceeded[^\n]*|net/http: [^\n]+|dial (tcp|udp)[: ][^\n]+|(read|write) tcp [^\n]+|connection (refused|reset|closed|timed out|error)\b[^\n.]*|(could not|couldn't|cannot|can't|unable to|failed to) (connect|translate host name|resolve host|reach host|open connection|establish (a )?connection)\b[^\n]*|remote end closed connection[^\n]*|websocket (closed|connection|error)[^\n]*|(ssl|tls)[:\s][^\n]*(failed|error|handshake)[^\n]*|certificate verify failed[^\n]*|read timed out[^\n]*|i/o timeout|broken pipe|no route to host|name or service not known|temporary failure in name resolution|cuda (error|out of memory)[^\n]*|socket hang up|network is unreachable|fetch failed|failed to fetch|(the )?(request|task|operation|query|connection|execution|tool call|function|lambda|job|run|agent run|call|statement|worker|script|process)( was| has)?( aborted:| canceled:| cancelled:)? ?timed? ?out( after)?( \d[\d.,]*)?( ?(ms|s|sec|seconds|milliseconds|minutes|min))?|(request|query|operation) (was )?cancell?ed[^\n]*(time-?out|deadline)[^\n]*|(request|response|read|connection|gateway|query|statement) time-?out( (exceeded|reached|expired))?)|error[:\s]+time-?out",
            kind="error_text",
            unless=r"\b(means|usually|try restarting|check (whether|that|if|your)|make sure|your (router|computer|phone|printer|browser|code)|you can|because)\b|\?",
            examples=(
                "Error: timeout",
                "upstream request timeout",
                "context deadline exceeded",
                "dial tcp: lookup tracking-api.local: no such host",
                "Request timed out.",
                "Error: request timed out after 30000 ms",
                "Task timed out after 15.02 seconds",
                "socket hang up",
            ),
        ),
        # Models, providers and agents
        Form(
            r"(error: )?this model's maximum context length is \d+ tokens.*|(the )?(maximum )?context (length|window) (was |has been )?exceeded[^\n]*|you exceeded your current quota.*|rate limit (was |has been )?(reached|exceeded)( for [^\n.]+)?[^\n]*|(rate_limit_exceeded|insufficient_quota|overloaded_error|server_error|internal_error|invalid_api_key|model_not_found|context_length_exceeded)|(the )?(model|engine|server|api)( is| '[^']+' is)?( currently| temporarily)? overloaded[^\n]*|incorrect api key provided[^\n]*|invalid api key|api key (is )?(missing|invalid|expired)|(invalid|missing|expired) (authentication|credentials|access token|auth token)|throttl(ed|ingexception)[^\n]*",
            kind="error_text",
            unless=r"\b(means|because your script|usually|you can|add a|to avoid)\b",
            examples=(
                "You exceeded your current quota, please check your plan and billing details.",
                "Rate limit reached for requests. Please try again in 20s.",
                "The model is currently overloaded with other requests.",
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9310 tokens.",
            ),
        ),
        Form(
            r"(the |your )?(response|reply|output|answer|request|prompt|content|completion|message) (was |has been |is )?(blocked|filtered|removed|withheld|stopped)( by| due to| because of) (the |our |a |its )?((content|safety|moderation|output|security)[ -]?)+(filters?|filtering|polic(y|ies)|system|settings|check|service|guidelines)[^\n]*",
            kind="error_text",
            unless=r"\b(means|usually|you can|because your)\b",
            examples=("Response blocked by content filter.",),
        ),
        Form(
            r"""agent stopped( due to| because of)?:? ?(max(imum)? )?(iteration|iterations|step|steps|time|recursion)[^\n]*|(max(imum)? )(number of )?(iterations|steps|retries|tool calls|recursion depth|turns) (was |has been |were )?(reached|exceeded)[^\n]*|could not parse (the )?(llm|model|tool) (output|response)[^\n]*|outputparser\w*[^\n]*|error (calling|executing|running|invoking|in executing|while calling|while executing) (the )?(function|tool|node|action|agent|chain|plugin)\b[^\n]*|(the )?(tool|function) [`'"]?[\w.:-]{2,60}[`'"]? (raised|threw|returned) an? (exception|error)[^\n]*|(the )?tool [`'"]?[\w.:-]{2,60}[`'"]? (failed|crashed|timed out|did not respond|is not available|was not found|not found)[^\n]*""",
            kind="error_text",
            unless=r"\b(here is|here are|instead|so i used|i used|means)\b",
            examples=(
                "Agent stopped due to max iterations.",
                "Could not parse LLM output: `I should check`",
                "Error calling function get_inventory: Unauthorized.",
                "Tool `list_tickets` raised an exception: HTTPError 500. Giving up.",
            ),
        ),
        Form(
            r"(?s)(thought: .+\n)?action: .+\naction input: .+",
            kind="malformed",
            examples=('Thought: look it up.\nAction: lookup\nAction Input: {"id": 3}\nObservation:',),
        ),
        Form(
            r"(?s)(event: \w+\n)?data: (\{.*|\[DONE\]\s*)",
            kind="malformed",
            examples=('data: {"delta":""}\n\ndata: [DONE]',),
        ),
        Form(
            r"[a-z][a-z0-9]*([._-][a-z0-9]+)*\.(errors?|messages?|msg|responses?|reply|replies|labels?|text|texts|title|fallback|default|intents?|i18n|chat|bot)([._-][a-zA-Z0-9]+)*|[A-Z][A-Z0-9]+(_[A-Z0-9]+)*_(ERROR|MESSAGE|MSG|FALLBACK|RESPONSE|TEXT|LABEL|TITLE)(_[A-Z0-9]+)*|\w+\.\w+\.(fallback|error|message|default|title|text|reply|answer|response)\w*",
            kind="malformed",
            unless=r"@|/|\.(txt|md|json|pdf|py|js|csv|com|org|net|io|log|html|xml|yaml|yml|toml|docx?|xlsx?)$",
            case=True,
            examples=("chat.responses.fallback_message", "errors.generic.message", "BOT_FALLBACK_MESSAGE"),
        ),
        Form(
            r"(?s)\{'\w+': .*\}|\[\{'\w+': .*\}\]|[A-Z]\w*(Message|Result|Response|Completion|Call|Chunk)\(\w+=.*\)",
            kind="malformed",
            case=True,
            examples=(
                "{'id': None, 'amount': None}",
                "ChatCompletionMessage(content=None, role='assistant')",
            ),
        ),
    ),
    # A reply that begins with a quotation, or has a code block, speaks about an error.
    whole_unless='^["“«„`]|```',
    # One of these occurs in the reply, which has at most `longest` characters and neither code nor quotation marks around it.
    # None of the forms inside occurs in a reply of several words without one of these marks.
    inside_marks=r"[{<\[\x00-\x08\x0e-\x1a\x{FFFD}ÃÐÑ]|```|â€|ã[\x{80}-\x{bf}]|æ[\x{80}-\x{bf}]|### |%[A-Z_!sd.@(]|(?-i:undefined|NaN|null|None|Invalid Date|Infinity)",
    inside=(
        Form(
            r"(?s)\A[\s\p{P}\p{S}\x{FE0F}\x{200D}]*(.{0,400}\s)?<(tool_call|function_call|tool_use|invoke|function_calls|function=\w+)\b.*\z",
            kind="malformed",
            unless='^["“«„`]|```',
            longest=2000,
            examples=(
                '<tool_call>\n{"name": "search", "arguments": {}}\n</tool_call>',
                '⚠️<tool_call>\n{"name": "search", "arguments": {}}\n</tool_call>',
            ),
        ),
        Form(
            r"(^|\n)### ?(System|User|Assistant):",
            kind="malformed",
            case=True,
            examples=("### System:\nYou are a helpful assistant.\n### User:\nhi",),
        ),
        Form(
            r"""(^|[\s"'(])\{(\d|\pL[\pL\d_.]{0,30})\}[^\n]*[\s"'(]\{(\d|\pL[\pL\d_.]{0,30})\}|(^|\s)%(s|d|\.\df|@)\W[^\n]*%(s|d|\.\df|@)(\W|$)""",
            kind="malformed",
            case=True,
            examples=(
                "Bonjour {0}, votre rendez-vous du {1} est confirmé.",
                "Thank you for your payment of %s. Your new balance is %.2f.",
            ),
        ),
        Form(
            r"\[object (Object|Promise|Undefined|Null|Array|Function|Error|HTML\w*)\]|<[\w.]+ (object|instance) at 0x[0-9a-fA-F]+>|<(coroutine|generator|function|bound method|built-in) [^>\n]+>|<Response \[\d{3}\]>|function \w*\(\w*\) \{ \[native code\] \}|%!\w\((<nil>|MISSING|string=|EXTRA)[^)]*\)",
            kind="malformed",
            examples=(
                "[object Object]",
                "Here is the chart:\n\n[object Promise]",
                "<app.models.User object at 0x7fd2e40b9c10>",
            ),
        ),
        Form(
            r"<\|(im_start|im_end|endoftext|assistant|system|user|eot_id|start_header_id|end_of_turn)\|>|\[/INST\]|<<SYS>>|<start_of_turn>|<end_of_turn>",
            kind="malformed",
            examples=("<|im_start|>assistant", "Sure. [/INST]"),
        ),
        Form(
            r"\{\{\s*[\w.$\[\]|' -]{1,60}\s*\}\}|\$\{[\w.$()\[\]? -]{1,60}\}|%\([a-z_]+\)[sdf]|<%=?\s*[@\w.]{1,60}\s*%>|<<[A-Z]\w{2,40}>>|%[A-Z_]{4,40}%|\[\[?[A-Z]{2,}(_[A-Z]+)+\]?\]|\[(INSERT|ADD|YOUR) [A-Z ]{3,40}\]|<(First|Last|Customer|Order|Agent|User|Ship|Ticket)[A-Z]\w+>|\b(Dear|Hello|Hi) [\[<]+[A-Za-z _]{3,20}[\]>]+,|(^|\s)%s\s([^%\n]*\s)?%[sd]\b",
            kind="malformed",
            examples=(
                "Dear {{customer_name}},",
                "[INSERT RESPONSE HERE]",
                "Dear [NAME], hello",
                "%s owes %s since %s",
                "Hi ${user.name}! Your box ships soon.",
                "Dear %FIRSTNAME%, thank you.",
                "Dear <<CustomerName>>, hello",
                "Open Mon–Fri [OPENING_HOURS_WEEKDAY].",
            ),
        ),
        Form(
            r"\{[a-z]+(_[a-z]+)+\}|(^|\s)\{(name|user|username|count|query|title|author|date|amount|city|order|customer|email|price|product|number|link|url|nombre|nome|vorname)\}",
            kind="malformed",
            examples=("Olá, {nome_cliente}! O seu pedido foi enviado.", "Found {count} matching documents."),
        ),
        Form(
            r"\b((?i)your( [a-z]+){1,3}|the( [a-z]+)? (price|balance|total|amount|cost|fee|rent|date|status|name|address|time|number)) (is|are|was|were) (undefined|NaN|null|None)\b[.!]?\s*$",
            kind="malformed",
            unless=r"(?i)\b(variable|value|function|field|column|parameter|property|object|array|key|result|output|type|code|input|argument|prop|attribute|index|expression|query|method|class|element)s?\b",
            case=True,
            examples=("Your balance is undefined.", "Your dentist is null.", "The price is None."),
        ),
        Form(
            r"""([$€£¥]\s?|\b((?i)dear|hello|hi|hey) |#)(undefined|NaN|null|None)\b|\b(undefined|NaN|null) ?([$€£¥%]|(EUR|USD|GBP|CHF|dollars?|euros?|items?|days?|hours?|minutes?|seconds?|nights?|points?|results?|orders?|units?|pieces?|kg|km|ms)\b)|\bInvalid Date\b|(\b|-)Infinity ?%|\b(undefined|NaN|null)\b[^`'"]+\b(undefined|NaN|null)\b|:[ \t]*(undefined|NaN|null)[ \t]*(\n|$)""",
            kind="malformed",
            case=True,
            examples=(
                "Your balance is undefined EUR as of NaN.",
                "Your total is $NaN.",
                "Your parcel null is in null and will arrive on Invalid Date.",
                "Hello undefined, welcome back!",
                "Total: NaN",
            ),
        ),
    ),
    # Words by which an answer speaks about such marks; a reply with one of them is not charged for them.
    inside_unless=r"""[`"“”«»„]|'\W?(undefined|nan|null|\[object|\{)|\b(template|templates|placeholder\w*|variable\w*|syntax|jinja|handlebars|mustache|liquid|javascript|typescript|python|java|json|sql|column\w*|parameter|value|values|returns?|print\w*|shows?|displays?|means|because|division|divided|function|mathematic\w*|limit|slope|tangent|equation|regex|replace|fill in|your own|markdown|shell|bash|environment|code)\b|[=;]\s*\$\{|://\S*(\{|%)""",
    # JSON bodies, by their keys in lower case.
    bodies=Bodies(
        # A body that has a key of an error, and beside it only keys by which a service reports about itself, is an error message.
        error_keys=frozenset(
            {
                "error",
                "errors",
                "exception",
                "fault",
                "errormessage",
                "error_message",
                "stacktrace",
                "traceback",
                "error_code",
                "errorcode",
                "error_description",
                "exceptionmessage",
                "faultstring",
                "is_error",
                "iserror",
                "err",
                "errno",
                "errortype",
                "error_type",
                "last_error",
            }
        ),
        beside_error=frozenset(
            {
                "detail",
                "details",
                "message",
                "msg",
                "code",
                "reason",
                "__type",
                "statustext",
                "request_id",
                "requestid",
                "description",
                "title",
                "type",
                "path",
                "timestamp",
                "trace_id",
                "traceid",
                "correlationid",
                "instance",
                "hint",
                "help",
                "documentation_url",
                "status",
                "state",
                "result",
                "outcome",
                "data",
                "statuscode",
                "status_code",
                "http_code",
                "httpstatus",
                "ok",
                "success",
                "time",
                "method",
                "url",
                "retryable",
                "retry_after",
                "id",
                "job_id",
                "jobid",
                "task_id",
                "run_id",
                "session_id",
                "sessionid",
                "service",
                "severity",
                "level",
                "tool",
                "object",
                "name",
                "node",
                "step",
                "answer",
                "response",
                "output",
            }
        ),
        status_keys=(
            "status",
            "state",
            "code",
            "statuscode",
            "status_code",
        ),
        failed_states=frozenset(
            {
                "error",
                "failed",
                "failure",
                "fail",
                "timeout",
                "timed_out",
                "unavailable",
                "denied",
                "exception",
                "crashed",
                "aborted",
                "internal",
                "internal_error",
                "server_error",
            }
        ),
        # A body of only a message or a detail, where the message has one of these words.
        failing_message="error|timed out|time-?out|unavailable|failed|forbidden|unauthori[sz]ed|not authorized|exceeded",
        # A body with these keys, and neither an answer nor a response, is a message or a call that should have stayed inside the chatbot.
        raw_calls=(
            frozenset({"name", "arguments"}),
            frozenset({"tool_calls"}),
            frozenset({"function_call"}),
            frozenset({"tool", "tool_input"}),
            frozenset({"action", "action_input"}),
            frozenset({"tool", "arguments"}),
            frozenset({"tool", "args"}),
            frozenset({"name", "parameters"}),
            frozenset({"function", "arguments"}),
            frozenset({"tool_name", "arguments"}),
            frozenset({"tool", "input"}),
            frozenset({"tool_use_id"}),
            frozenset({"role", "content"}),
            frozenset({"choices"}),
            frozenset({"candidates"}),
        ),
        error_examples=(
            '{"error": {"code": 500, "message": "Internal Server Error"}}',
            '{"success": false, "message": "backend gone"}',
            '{"detail": "Internal Server Error"}',
            '{"status": 500, "path": "/api/answer"}',
            '{"message": "Endpoint request timed out"}',
        ),
        call_examples=(
            '{"name": "query_database", "arguments": {"sql": "SELECT 1"}}',
            '{"role": "assistant", "content": null}',
        ),
    ),
)
