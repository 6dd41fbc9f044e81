"""The signs by which a failed reply is known: traces and error messages in five languages."""

# ruff: noqa: E501 — lists of phrases.

import re

from answerkey.text.lazy import lazy

__all__ = [
    "FOREIGN_NOTICES",
    "MESSAGES",
    "NOTICES",
    "TRACES",
    "kind_of",
]

_I = re.IGNORECASE
# How much of a reply is read as its notice.
_NOTICE = 400
_M = re.MULTILINE

# Exception traces, by language.
TRACES = lazy(
    r"Traceback \(most recent call last\)(?::|\s*\n|\s*\Z)|^\s*File \"[^\"\n]{1,300}\", line \d+, in "
    r"|^\s+at [\w.$<>/]+\([\w$]+\.(?:java|kt|scala|groovy):\d+\)|^Exception in thread \""
    r"|^\s+at .{0,200}[\w>)]:\d+:\d+\)?$|^\s+at [\w.`<>\[\]]+\(.{0,200}\)(?: in .{1,200}:line \d+)?$"
    r"|^goroutine \d+ \[|^panic: |^thread '[^'\n]{1,80}' (?:\(\d+\) )?panicked at"
    r"|^Unhandled [Ee]xception|^\s*[\w./-]{1,200}\.rb:\d+:in [`']|^\s+from [\w./-]{1,200}\.rb:\d+"
    r"|PHP (?:Fatal|Parse) error: |^Fatal error: Uncaught|^#\d+ /[\w./-]+\(\d+\): |^Stack trace:"
    r"|^Segmentation fault(?=\W*$| ?[:(]| at )|\*\*\* stack smashing|^Caused by: [\w.]+(?:Exception|Error)"
    r"|^UnhandledPromiseRejection|node:internal/|^\*\* \((?:\w+\.)*\w+\) |^\*\* exception error|"
    r"^\s+\([\w ]{1,40}[\d.]+\) lib/[\w./]+:\d+"
    r"|^stack traceback:|^At line:\d+ char:\d+|^==\d+==\s?ERROR: |^Stacktrace:$|^Require stack:|^CallStack \(from HasCallStack\)|^terminate called after throwing|^#\d+ {2,}\S.{0,200}:\d+:\d+\)$"
    r"|^Error in [\w.$:]+\(.{0,100}\) ?: | at [\w./-]{1,100}\.p[lm] line \d+\.|^Fatal error: (?:Unexpectedly|"
    r"Index out)|\.go:\d+ \+0x"
    r"|^<--- Last few GCs --->|^FATAL ERROR: .{0,80}(?:heap|[Aa]llocation failed)|^Whitelabel Error Page$",
    _M,
)


def _first_of(patterns: tuple[str, ...]) -> "re.Pattern[str]":
    """One pattern that tries each in turn; to loop over them takes half as long again."""
    return lazy("|".join(f"(?:{pattern})" for pattern in patterns), _I)


_SORRY = (
    r"(?:(?:oops|uh[- ]oh|whoops|hmm|unfortunately|sorry|apologies|my apologies|oh no|"
    r"well|hi|hello|warning|notice|note|slow down|whoa|hold on|heads up)\b[,.!:\s]*+)*+"
)
_APOLOGY = (
    r"(?:(?:i(?:'m| am|’m)|we(?:'re| are|’re)) (?:very |so |really |terribly )?(?:sorry|"
    r"afraid)|i apologi[sz]e|we apologi[sz]e|please accept (?:my|our) apologies)"
    r"(?: for (?:the|any|this) \w+)?[,.:;]?\s*(?:but |that |because |as |however,? )?"
)
_TECH = (
    r"(?:tool|search(?: tool| service| engine)?|query|sql query|database(?: query| connection|"
    r" server)?|api(?: call| request)?|request|function(?: call)?|"
    r"server|backend|service|connection|operation|model|plugin|agent|chain|call to [\w ]{1,30}|upstream(?: service| server)?|"
    r"(?:language )?model|assistant|chatbot|workflow|pipeline|knowledge base|retriever|"
    r"vector store|system|network|remote server|job|task|(?:tool |function )?[a-z]+_[a-z_]+(?: tool)?)"
)
_ADJ = (
    r"(?:(?:unexpected|internal|unknown|technical|system|server|temporary|network|database|"
    r"api|tool|fatal|critical|generic|timeout|unhandled|runtime|parsing|authentication|"
    r"connection|processing|some|serious|slight|minor|http|sql)\s+){0,3}"
)
_TROUBLE = r"(?:errors?|issues?|problems?|exceptions?|difficult(?:y|ies)|trouble|failure|glitch|hiccup|snag)"

# What programs write, each at the beginning of a reply: Error: …, ValueError: …, codes, log lines.
MESSAGES = _first_of(
    (
        # Error: …, ValueError: …, [ERROR] …, Error code: 429
        r"\W*(?:\[?(?:fatal|error|err|critical)\]?|(?:[\w.]+\.)?[a-z]\w*(?:error|exception|"
        r"fault))\s*(?:\[[\w-]+\]|\([\w -]+\)|#?\d{1,5})?(?:\s*[:|]|\s+[-—–])\s*(?!none\b|"
        r"0\b|no(?: errors?)?\W*$|n/a|margins?\b|rates?\b)\S",
        r"\W*(?:[a-z_]\w*\.)+\w*(?:timeout|refused|denied|notfound|exceeded|unavailable|closed|reset)\w*: ",
        r"\W*error (?:executing|calling|running|invoking|while|during|when|processing|fetching|"
        r"connecting|accessing|retrieving|loading|parsing|generating|reading|opening|querying|"
        r"searching|communicating|from)\b(?! (?:you|your taxes))",
        r"\W*(?:panic(?: recovered)?:|runtime error:|application error\b|fatal error\b|overloaded(?:_error)?(?=[:.]|"
        r"\W*$)|upstream (?:request|connect|server)|getaddrinfo )",
        r"\W*(?:exception|failure): .{0,80}?(?:fail|error|time|null|invalid|denied|refus|unable|"
        r"missing|connect|index|key|could|cannot|bad|wrong|not )",
        r"\W*(?:unknown|invalid|unsupported|no such|unrecogni[sz]ed) (?:tool|function|action|"
        r"tool call|function call)\b|\W*no (?:tool|function) (?:named|called|with)|\W*(?:tool|"
        r"function|action) [\w`'\"]{1,60} (?:(?:was |is )?not (?:found|available|valid|registered|"
        r"defined)|does not exist)",
        r"\W*deadlock (?:found|detected)|\W*too many (?:connections|open files|clients)\b",
        r"\W*(?:warning|notice|fatal error|parse error): .{0,250} on line \d+|\W*(?:\w+\\)+\w+(?:exception|error)\b",
        r"\W*(?:(?-i:SSL|TLS): |(?-i:[A-Z]{2,20}(?:_[A-Z]{2,20}){0,4}_(?:FAILED|ERROR|EXCEEDED|"
        r"DENIED|REFUSED|UNAVAILABLE|TIMEOUT))\b|(?:fehler|erreur)\s?: )",
        r"\W*(?:http )?(?:status|error|response)(?: code)?:? [45]\d\d\W*$|\W*temporary failure in name resolution|"
        r"\W*no healthy upstream|\W*default backend - \d+|\W*whitelabel error page|\W*application error: a (?:client"
        r"|server)-side exception|\W*run-?time error '?\d+|\W*(?:exit|return) code:? -?[1-9]\d*\W*$",
        r"\W*(?:(?:your|the) )?(?:api|access|auth\w*|bearer|session) (?:keys?|tokens?|credentials?|"
        r"login)(?: (?:is|are|was|were|has|provided))* (?:not valid|invalid|expired|missing|"
        r"revoked|rejected)\b",
        r"\W*[45]\d\d\s*[–—:-]\s*(?:we|you|the|this|page|oops|sorry|something|not|access|server)\b",
        # Codes and prefixes of programs: ORA-12541, SQLSTATE[…], curl: (7), [Errno 111], pkg.ErrorClass: …, log lines
        r"\W*(?-i:(?:ORA|TNS|PLS|SQL|AADSTS|DPY|DPI|CPF|SP2)-?\d{4,6}\b:|SQLSTATE\b|Msg \d+, Level \d+|"
        r"\[Errno -?\d+\]|E[A-Z]{4,14}: |E[A-Z]{5,14} \S+$|rpc error: |(?:UNAVAILABLE|DEADLINE_EXCEEDED|"
        r"RESOURCE_EXHAUSTED|INTERNAL|UNAUTHENTICATED|PERMISSION_DENIED|WRONGTYPE|NOAUTH)\b[ :]|"
        r"\(error\) |npm ERR!|fatal: )",
        r"(?-i:(?:[a-z_]\w*\.)+[A-Z][\w$]+: \S)",
        r"(?-i:[a-z][\w./-]{1,30}: )(?:[\w./-]{1,30}: )?(?:\(\d+\) )?[^.\n]{0,80}?\b(?:failed|"
        r"refused|denied|not found|error|timed out|no such|unreachable|cannot|could not|unable to|"
        r"fatal)\b",
        r"\W*\d{4}-\d\d-\d\d[T ][\d:.,Z+]{5,20}\]?\W+(?:[\w.\[\]-]{1,40}\W+){0,3}?(?-i:ERROR|FATAL|CRITICAL|SEVERE|error)\b",
        r"\W*\[(?:error|fatal|critical|exception|failed|failure)\]",
        r"\W*(?:error|err)[ _-]?(?:code)?[ :#]+\d{2,5}\b(?! (?:means|is|indicates|refers|occurs|was))",
        r"\W*(?:(?:[\w.]+\.)?[A-Z]\w+(?:Error|Exception))(?:\(|\.?$)",
        # Known machine messages
        r"\W*(?:http(?:/\d(?:\.\d)?)? ?(?:error |status )?)?[45]\d\d[ :,-]+(?:client error|"
        r"server error|bad request|unauthori[sz]ed|payment required|forbidden|not found|method not allowed|"
        r"request timeout|conflict|gone|payload too large|unprocessable|too many requests|"
        r"internal server error|not implemented|bad gateway|service (?:temporarily )?unavailable|"
        r"gateway time-?out|overloaded)",
        r"\W*(?:internal server error|bad gateway|service (?:is )?(?:temporarily |currently )?unavailable|"
        r"gateway time-?out|too many requests(?! (?:for|from|to) )|request time-?d? ?out|(?:api |request |token |global |usage )?rate limit (?:exceeded|"
        r"reached|hit)|(?:you(?:'ve| have)? )?(?:exceeded|reached|hit) (?:your|the|a) (?:current |"
        r"rate |usage |api |daily )*(?:quota|limit|rate)|quota exceeded|out of memory(?! of)|"
        r"cuda out of memory|java heap space|deadline exceeded|context deadline exceeded|operation timed out|"
        r"read timed out|connect(?:ion)? timed out|connection (?:refused|reset|aborted|closed|"
        r"error|lost|failed|timed out)(?! (?:between|among)\b)|could not connect|unable to connect|no route to host|"
        r"network (?:is unreachable|error)|econnrefused|econnreset|etimedout|enotfound|permission denied|"
        r"access denied(?=\s*(?:$|[.:;,!-]|for user|to |by ))|authentication failed|invalid api key|"
        r"incorrect api key|maximum context length|this model's maximum context|max(?:imum)? (?:number of )?"
        r"(?:iterations|steps|tool calls|attempts|"
        r"retries|recursion depth|turns)(?: limit)?(?: was| has been)? (?:reached|exceeded)|"
        r"agent stopped(?: due to|:)|killed$|oomkilled|no response (?:was )?(?:received|generated|"
        r"from)(?! (?:from |by )?(?:the |an? |my |any )?(?:tenants?|landlord|seller|buyer|"
        r"owner|contractor|city|county|court|bank|insurer|lender)\b)|not found$|task timed out|"
        r"worker timeout|query (?:timed out|cancell?ed)|lock wait timeout|could not (?:translate host|"
        r"resolve host|load|parse|decode)|undefined (?:index|variable|method|function)|cannot read propert|"
        r"uncaught |unexpected token|unexpected end of (?:json )?(?:input|file)|syntax error (?:at|"
        r"near|in)|no such (?:table|column|file or directory|tool|function)|relation \"\w+\" does not exist|"
        r"object reference not set|nil pointer|index out of range|division by zero|missing required (?:argument|"
        r"parameter)|unsupported operand|list index out of range|string indices must|expecting value: line)",
    )
)
# Sentences and headlines of people's making, at the beginning of a reply.
NOTICES = _first_of(
    (
        # An unexpected error occurred …
        _SORRY
        + r"(?:"
        + _APOLOGY
        + r")?(?:it (?:seems|looks|appears)(?: like| that)? )?(?:an?|some|the following) "
        + _ADJ
        + _TROUBLE
        + r" (?:has |have |had |just )?(?:occurr?ed|happened|arose|arisen|came up|been encountered|"
        r"was encountered|was thrown|prevented)(?!,? (?:in|on) (?:the )?(?:\d{4}|19|20|jan|"
        r"feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))",
        _SORRY
        + r"(?:"
        + _APOLOGY
        + r")?(?:it (?:seems|looks|appears)(?: like| that)? )?there (?:was|were|has been|have been|"
        r"is|seems to be|appears to be|might be|may be) (?:currently )?(?:an?|some|a few)? ?"
        + _ADJ
        + _TROUBLE
        + r" (?:(?:with|while|when|in|during|at|on|accessing|processing|connecting|retrieving|"
        r"executing|running|completing|fetching|generating|searching|loading|calling|parsing|"
        r"handling|communicating|reaching)\b.{0,60}?(?:request|search|quer|tool|database|server|"
        r"connect|process|retriev|access|fetch|generat|execut|load|api|system|service|our end|"
        r"my end|respon|document|model|data)|that prevented)",
        # I encountered an error …
        _SORRY
        + r"(?:"
        + _APOLOGY
        + r")?(?:it (?:seems|looks|appears)(?: like| that)? )?(?:i|we|the (?:system|assistant|"
        r"agent|model|tool|server|application|service|chatbot|search))(?:'ve|’ve|'m|’m|'re|"
        r" am| are| have| has| had| just| seem to have| seem to be| was| were| also)* (?:encounter(?:ed|"
        r"ing)?|r[au]n(?:ning)? into|hit|experienc(?:ed|ing)|fac(?:ed|ing)|having|met with|"
        r"received|got|getting|returned) (?:an?|some|the following|several|this|repeated)? ?"
        + _ADJ
        + _TROUBLE
        + r"(?! (?:of|in|on) (?:the|your) (?:tax|form|return|ledger|books|filing|records))",
        _SORRY
        + r"(?:"
        + _APOLOGY
        + r")?something (?:has |have |just |seems to have )?(?:(?:went|gone|go) wrong|broke)(?! (?:with|"
        r"in|at) (?:the |your |our |my )?(?!request|search|server|database|tool|connection|"
        r"system|query|processing|end|side|backend|response|model|service|api|agent)\w)",
        # Unable to connect / process …
        _SORRY
        + r"(?:"
        + _APOLOGY
        + r")?(?:i|we|it|the \w+)?(?:'m|’m|'re| am| are| was| were| is| have been|’re)? ?(?:currently |"
        r"temporarily |still )?(?:unable to|(?:could|can|was|were|am|are|is)(?:n['’]t| not|"
        r" unable)(?: able)?(?: to)?|cannot|can['’]t|not able to|failed to|have failed to|"
        r"had trouble|having trouble|unsuccessful in) (?:successfully |properly |currently )?"
        r"(?:connect(?:ing)?(?: to)?|reach(?:ing)? (?:the|our|any) (?:server|database|service|"
        r"api|backend|\w+ server|\w+ service|tool)|establish(?:ing)? (?:a |the )?connection|"
        r"process(?:ing)? (?:your|the|this|that) (?:request|query|question|message|response)|"
        r"complet(?:e|ing) (?:your|the|this|that) (?:request|search|query|operation|task|action|"
        r"response)|"
        r"execut(?:e|ing)|generat(?:e|ing) (?:a |an |the |any )?(?:response|answer|reply|completion|"
        r"output)|contact(?:ing)? (?:the|our) (?:server|database|service|api|backend)|communicat(?:e|"
        r"ing) with|pars(?:e|ing) (?:the )?(?:response|json|output|tool|model|result|llm)|"
        r"load(?:ing)? (?:the )?(?:model|data|page|resource|document index|index|configuration)|"
        r"invok(?:e|ing)|call(?:ing)? (?:the )?\w*(?: tool| api| function)|"
        r"(?:retriev|fetch|access|get|query|search|read|load|look up|run|perform)\w*\b.{0,60}?(?:due to|"
        r"because of (?:an?|the)|right now|at this time|at the moment|because the (?:tool|"
        r"server|database|service|connection|api|search|system)|as the (?:tool|server|database|"
        r"service|api)|(?:: |- )\w*(?:error|exception|timeout|refused)|after \d+ (?:retries|"
        r"attempts)|fetch\b))",
        r"\W*failed to (?:fetch|connect|load|execute|retrieve|process|parse|call|invoke|open|"
        r"authenticate|initiali[sz]e|decode|deserialize|serialize|resolve|establish|generate|"
        r"complete the (?:request|operation)|communicate|query|run|start|acquire|allocate|"
        r"get (?:a )?response|send)\b",
        # The tool failed, the database is unavailable, …
        _SORRY
        + r"(?:"
        + _APOLOGY
        + r")?(?:it (?:seems|looks|appears)(?: like| that)? )?(?:the |our |my |an? |your |all )?(?:(?:document|"
        r"ai|llm|language|database|web|vector|external|remote|internal|search|embedding|data|"
        r"chat|upstream|third-party|inference|underlying|requested|backend) ){0,2}"
        + _TECH
        + r" ?(?:`[^`]{1,40}`|'[^']{1,40}'|\"[^\"]{1,40}\")? ?(?:that i \w+ )?(?:has |have |"
        r"had |just |unexpectedly |repeatedly |could not be |was |is |are |seems to have |"
        r"seems to be |appears to be |currently |temporarily |at the moment )*(?:failed(?! (?:the |"
        r"its |an? )?(?:inspection|test|audit|exam|review)| (?:in|on|last|during) (?:\d|jan|"
        r"feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|year|month|week|winter|summer))|fail(?:s|"
        r"ing)?\b(?! (?:for|when|if|because|unless)\b)|timed out|time-?out\b|returned (?:an? |the following )?"
        + _ADJ
        + r"(?:error|exception|(?:http )?(?:status )?(?:code )?[45]\d\d|invalid|malformed|no response|"
        r"null)|threw|raised|crashed|errored|unavailable|unreachable|unresponsive|not (?:responding|"
        r"available|reachable)|refused|offline|overloaded|aborted|terminated|interrupted|reset|"
        r"completed due|rate[- ]limited|down(?: for maintenance| right now| at the moment|"
        r"[.,!]|$)|experiencing|did not respond|didn['’]t respond|exceeded|reset by peer|closed unexpectedly|"
        r"lost(?=\W*$)|dropped(?=\W*$))",
        r"\W*(?:tool|function|action|query|search|request|api|sql|agent|llm|model|chain|database|"
        r"connection|network|server|fetch|upload|parse|parser|validation|authentication|timeout|"
        r"runtime|execution|output parsing|response)(?: execution| call| request| parsing|"
        r" processing| generation| access)? (?:error|failed|failure|exception|refused|reset|"
        r"aborted|timed out|timeout|unavailable|lost|closed|denied(?!:))(?!\s+(?:rate|rates|margin|"
        r"is when|means|handling|policy|codes?|reports?|messages?|can|may|usually|often|are|"
        r"occurs?))\b",
        r"\W*(?:the )?(?:response|output|request|content|stream) (?:was |has been |is )?(?:filtered|"
        r"blocked by|truncated unexpectedly|aborted|cancell?ed|could not be (?:generated|parsed|"
        r"decoded|processed|completed))",
        r"\W*(?:your |the |this )?(?:request|query|search|session|connection|task|operation|"
        r"message|question) (?:could not|couldn['’]t|can(?:not|'t|’t)|was not|has not been) be (?:process|"
        r"complet|handl|fulfil|execut|perform|establish|answer(?:ed)? (?:due|because of an? (?:error|"
        r"problem)))\w*",
        r"\W*(?:we(?:'re|’re| are)|our (?:servers?|systems?|services?) (?:is|are)) (?:currently |"
        r"temporarily )?(?:experiencing|undergoing|under|overloaded|down|at capacity)",
        r"\W*(?:please )?(?:try again (?:later|in a (?:few|moment|minute|bit|while))|wait and try again)(?!\w|"
        r"\W?\s+(?:is|was|means|appears)\b)",
        r"\W*(?:oops|uh[- ]oh|whoops)\b.{0,40}(?:wrong|error|broke|failed|problem|again)",
        r"\W*(?:sorry|apologies),? (?:but )?(?:the|an?|our|my) (?:\w+ ){0,3}(?:failed|crashed|"
        r"timed out|is down|is unavailable|is not available|error)\b",
        # What was generated is withheld or cut.
        r"\W*(?:the |your |model )?(?:response|output|completion|reply|generation|message|prompt|content|request) "
        r"(?:was |has been |is )?(?:truncated|removed|blocked|filtered|flagged|withheld|throttled|cut off|discarded)\b",
        r"\W*(?:blocked|filtered|flagged|stopped) by (?:the |our )?(?:\w+ )?(?:policy|filters?|moderation|guardrails?)\b|"
        r"\W*(?:the |our )?(?:content|safety|moderation) filter(?:ing)? (?:was |has been )?triggered",
        r"\W*(?:the )?model (?:\S{1,60} )?is (?:currently |still )?(?:loading|starting|warming up)\b",
        # What browsers show.
        r"\W*(?:this |the )?(?:web ?)?(?:page|site) (?:isn['’]t|is not|can['’]t|cannot|could not) "
        r"(?:working|available|be (?:reached|displayed|found|loaded))",
        _SORRY
        + r"(?:"
        + _APOLOGY
        + r")?(?:i|we|the (?:\w+ )?(?:model|assistant|agent|bot|system|server|service|process|job|tool|query|request|search|worker|run|container|gpu))(?: have| has|['’]ve)? (?:ran|run) out of "
        r"(?:time|memory|tokens|steps|retries|attempts|credits|budget|context)\b",
        r"\W*(?:[\w'’-]+ ){1,5}?(?:is|are|'re|’re) (?:currently |now |still )?(?:at|over|out of|beyond) "
        r"(?:full |max\w* |its |our )?capacity\b",
        r"\W*you(?:['’]re| are) (?:sending|making|asking|doing)\b[^.]{0,40}too (?:quickly|fast|many|often|much)\b",
        r"\W*you(?:['’]ve| have) (?:sent|made|asked) too many (?:requests|messages|calls|questions)",
        _SORRY
        + r"you(?:['’]ve| have)? (?:exceeded|reached|hit|used up|run out of) (?:your|the|a|all|its) (?:[\w-]+ ){0,4}?"
        r"(?:quota|(?:message|request|usage|rate|token|chat|query|question|analysis|api|account|plan|daily|hourly|weekly|monthly|free|credit|prompt)s? (?:limit|cap|allowance)s?|"
        r"cap (?:of|on) \d+ (?:messages|requests|questions)|free messages|credits)\b",
        r"\W*too many (?:people|users)\b[^.]{0,30}\b(?:using|asking|online|connected)\b",
        r"\W*(?:the )?(?:agent|assistant|i|we|model|chain|loop|bot)(?: has|['’]ve| have)? (?:reached|hit|exceeded) (?:its|the|my|our) (?:max\w*|limit|iteration limit|step limit)\b",
        # What is too long for the model.
        r"\W*(?:the |this |your )?(?:conversation|chat|prompt|input|message|request|context|document|thread|query|question) (?:has |is |was |have )?"
        r"(?:(?:exceed\w*|too long|too large|over|reached|longer than)\b[^.]{0,50}\b(?:context|tokens?|limit|maximum|length|window|the model)|too (?:long|large) (?:for|to)\b)",
    )
)
# The same in Spanish, German, French and Japanese.
FOREIGN_NOTICES = _first_of(
    (
        # Spanish
        r"\W*(?:lo siento|lo lamento|lo lamentamos|perd[oó]n|disculp[ae]s?|lamentablemente|"
        r"ups|vaya)?[,.:;!]*\s*(?:pero )?(?:lamentamos[^.]{0,40})?(?:ha ocurrido|ha habido|"
        r"se ha producido|ocurri[oó]|se produjo|hubo|hay|encontr[eé]|he encontrado|se encontr[oó]) (?:un|"
        r"alg[uú]n) (?:error|problema|fallo)(?! en (?:la|el|las|los|su) (?!sistema|servi|base|"
        r"b[uú]squeda|conexi|solicitud|consulta|proces|red|plataforma))",
        r"\W*(?:lo siento|lo lamento|lo lamentamos|perd[oó]n|disculp[ae]s?|lamentablemente)?[,.:;!]*\s*(?:pero )?(?:"
        r"no (?:se )?(?:pudo|pude|puedo|ha podido|he podido|fue posible|es posible|pudimos) (?:conectar|"
        r"establecer|procesar|completar|ejecutar|acceder a la base)|algo sali[oó] mal|error (?:interno|"
        r"inesperado|de (?:conexi[oó]n|red|servidor|sistema)|al |del servidor)|tiempo de espera agotado|"
        r"se agot[oó] el tiempo|servicio no disponible|(?:el|la) (?:servicio|servidor|base de datos|"
        r"herramienta|sistema) (?:no (?:est[aá] disponible|responde)|ha fallado|fall[oó])|"
        r"demasiadas solicitudes|int[eé]ntelo de nuevo|conexi[oó]n rechazada)",
        # German
        r"\W*(?:es tut mir leid|tut mir leid|entschuldigung|leider|verzeihung|hoppla|ups)?[,.:;!]*\s*(?:aber )?(?:(?"
        r":es )?(?:ist|sind|gab|gibt) (?:leider |hier |bei [^.]{1,40})?(?:ein|einen|mehrere) (?:\w+ )?(?:\w*fehler|"
        r"problem|st[oö]rung)(?: aufgetreten)?|(?:es |da )?ist (?:leider )?etwas schiefgelaufen|"
        r"etwas ist schief|\w*fehler (?:beim|bei der|bei|aufgetreten|:)|(?:die |der |das )?(?:verbindung|"
        r"anfrage|abfrage|suche|datenbank|server|dienst|werkzeug|datenbankverbindung|datenbankabfrage)[\w ]{0,40}(?:"
        r"fehlgeschlagen|abgelehnt|nicht (?:erreichbar|verf[uü]gbar)|unterbrochen|antwortet nicht|"
        r"schlug fehl|ist abgelaufen)|interner (?:server)?fehler|zeit[uü]berschreitung|zu viele anfragen|"
        r"ich (?:bin auf|habe) einen fehler|(?:ich )?konnte (?:ihre|die|deine|keine) (?:anfrage|"
        r"verbindung)[^.]{0,30}(?:nicht|herstellen)|(?:ihre|die) anfrage konnte nicht|bitte versuchen sie es sp[aä]t"
        r"er|ein (?:unerwarteter |interner |unbekannter )?fehler ist)",
        # French
        r"\W*(?:je suis )?(?:d[eé]sol[eé]e?s?|excusez-moi|malheureusement|oups)?[,.:;!]*\s*(?:mais )?(?:nous sommes "
        r"d[eé]sol[eé]s[,.]? )?(?:une erreur (?:\w+ )?(?:s['’]est produite|est survenue|a [eé]t[eé] rencontr[eé]e|"
        r"interne|inattendue)|un probl[eè]me (?:\w+ )?(?:s['’]est produit|est survenu)|il y a eu (?:une erreur|"
        r"un probl[eè]me)|j['’]ai rencontr[eé] (?:une erreur|un probl[eè]me)|(?:il est |il m['’]est )?impossible de "
        r"(?:se connecter|me connecter|traiter|joindre|contacter|terminer|contacter)|erreur (?:interne|"
        r"de connexion|du serveur|serveur|lors|inattendue|r[eé]seau|\d{3})|quelque chose s['’]est mal pass|"
        r"d[eé]lai d['’]attente|le (?:service|serveur|d[eé]lai)[\w ]{0,30}(?:indisponible|"
        r"ne r[eé]pond pas|expir[eé]|d[eé]pass[eé])|(?:la )?(?:connexion|requ[eê]te|recherche|"
        r"base de donn[eé]es)[\w ]{0,40}(?:a [eé]chou[eé]|refus[eé]e|indisponible|n['’]est pas disponible|"
        r"injoignable)|trop de requ[eê]tes|veuillez r[eé]essayer|l['’]outil[\w ]{0,30}a [eé]chou[eé])",
        # Japanese
        r"\W*(?:申し訳(?:ありません|ございません)[がけ]?[どれも]*|すみません|ごめんなさい|大変)?"
        r"[、。が,. ]*.{0,30}?(?:エラーが(?:発生|"
        r"起き|起こ)|問題が(?:発生|起き)|接続(?:に失敗|できません|が拒否|エラー)|(?:処理|検索|取得|実行|読み込み|生成)(?:中に|に)(?:エラー|"
        r"失敗)|タイムアウト(?:しました|が発生|になりました|です)|内部(?:サーバー)?エラー|サーバーエラー|(?:サービス|サーバー|データベース)(?:は|"
        r"が|に)[^。]{0,12}(?:利用できません|応答していません|接続できません|ダウン)|リクエストが多すぎ|しばらく(?:して|経って|待って)から|もう一度お試し|"
        r"リクエストを処理できません|正常に処理できません)",
    )
)
# The first that is found in the notice names the kind; error_text where none is.
_KIND_SIGNS = (
    ("rate_limit", lazy(r"rate.?limit|too many requests|\b429\b|quota|overload|(?:high|heavy|many|unusual\w*|"
        r"increased) (?:\w+ )?(?:demand|traffic|load|volume)|at (?:full )?capacity|throttl|"
        r"too many (?:messages|calls)|service is (?:too )?busy|(?:usage|daily|message) limit|"
        r"混み合|混雑|resource_?exhausted|demasiadas solicitudes|zu viele anfragen|trop de requ|"
        r"リクエストが多すぎ", _I)),
    ("memory", lazy(r"out of memory|memoryerror|heap space|oomkilled|ran out of memory|(?:cannot|can['’]t) allocate|bad_alloc|"
        r"(?:not|n['’]t) enough memory|too much memory|more memory than|insufficient memory|memory (?:limit|exhausted)|"
        r"memoria insuficiente|suficiente memoria|m[eé]moire|arbeitsspeicher|メモリ", _I)),
    ("timeout", lazy(r"time[ds]?[- ]?out|timing out|deadline[_ ]?exceeded|etimedout|(?:took|taking) (?:too long|"
        r"longer than)|did not (?:finish|complete|respond) (?:in|within) |time limit|a expir|"
        r"\b504\b|\b408\b|zeit[uü]berschreitung|tiempo de espera|d[eé]lai d['’]attente|タイムアウト", _I)),
    ("connection", lazy(r"connection (?:to .{1,60})?(?:was )?(?:refused|reset|aborted|closed|error|lost|failed)|"
        r"econn|\benotfound|(?:could not|unable to|failed to|couldn['’]t|cannot) connect|getaddrinfo|"
        r"no listener|name resolution|max retries exceeded|network (?:trouble|problem|issue)|"
        r"joindre le|connect(?:ion)? (?:error|failure)|failed to fetch|(?:databases?|(?:vector|"
        r"document) store|servers?|backend|host)\b.{0,40}\b(?:down|offline|unreachable|not reachable|"
        r"inaccessible|not answering|n['’]t answering)\b|(?:access|reach|connect|contact)\w* (?:to |"
        r"with )?(?:the |our |my )?(?:[\w-]+ ){0,3}(?:database|server|service|backend|host|"
        r"api)\b|acceder a la base|(?:get through|reach) to|datenbank nicht erreich|lost (?:(?:the|"
        r"my|our) )?connection|problem with (?:my|the|our) connection|connection\b.{0,30}(?:dropped|"
        r"unstable)|connecter|接続でき|resolve host|no route to host|unreachable|connectionerror|"
        r"verbindung|conectar|conexi[oó]n|connexion|se connecter|接続|通信", _I)),
    ("http", lazy(r"\b(?:http|status(?: code)?|error(?: code)?)[ :/]*(?:\d\.\d )?[45]\d\d\b|bad gateway|"
        r"service (?:\w+ )?unavailable|internal server error|^\W*[45]\d\d\b|forbidden|unauthori[sz]ed", _I)),
    ("tool", lazy(r"\btool(?:s| call| execution)?\b.{0,60}(?:error|fail|raised|threw|exception|crash|"
        r"unavailable|not working|n['’]t working|not respond|n['’]t respond)|response from (?:the |"
        r"our )?(?:\w+ )?(?:tool|search service)|toolexecution|\b(?:tool|function)(?: call)?\b[^.]{0,60}(?:not found"
        r"|not available|missing|is available)|(?:invalid|unknown|no such) tool|function call failed|"
        r"error (?:executing|calling|running|invoking|in) (?:the )?(?:tool|function)", _I)),
)  # fmt: skip


def kind_of(notice: str) -> str:
    """The kind of failure that a notice tells of; `error_text` where it says no more."""
    for kind, sign in _KIND_SIGNS:
        if sign.search(notice[:_NOTICE]):
            return kind
    return "error_text"
