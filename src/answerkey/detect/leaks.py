"""What should have stayed inside: raw objects, calls of tools, control marks, values that were never set, unfilled templates."""

# ruff: noqa: E501 — lists of marks.

import re

from answerkey.detect.detected import DetectedFailure
from answerkey.text.lazy import lazy

__all__ = ["leaked"]

_M = re.MULTILINE
# Objects printed instead of their content, and calls or control marks that should have stayed inside.
_LEAKS = lazy(
    r"\[object \w+\]|<(?:function|bound method|built-in \w+|coroutine object|generator object|"
    r"async_generator object) [^>\n]{1,200}>"
    r"|<[\w.]+ (?:object|instance) at 0x[0-9a-fA-F]+>|<class '[\w.]+'>|<Response \[\d{3}\]>|Promise \{ ?<"
    r"|\bSystem\.(?:Object|String|Collections\.[\w.`]+|Threading\.Tasks\.Task)[\[`]|\b[a-z]+(?:\.[a-z]\w*)+\.[A-"
    r"Z]\w*@[0-9a-f]{5,8}\b"
    r"|^(?:AIMessage|ChatCompletion|ChatCompletionMessage|HumanMessage|ToolMessage|Message|"
    r"TextBlock|ToolUseBlock|RunResult|CompletionMessage)\w*\("
    r"|^\[(?:TextBlock|ToolUseBlock|AIMessage)\(|<\|\w{1,30}\|>|\[/?INST\]|<<SYS>>|</?(?:tool_response|"
    r"function_results)>|<invoke name=|</?tool(?:_calls?|_use|_code|_result)?>|</?function_calls?>"
    r"|^Action: ?\w+\s*\nAction Input:|^Thought:.{0,400}\nAction:|<function=\w+>|\[TOOL_CALLS\]|^functions\.\w+\(\{"
    r"|\[native code\]|\A[A-Z]\w{1,60}\(\w{1,40}=[^\n]{0,2000}\)\Z|\A(?:Ok|Err|Some)\([^\n]{0,500}\)\Z|"
    r"\Amap\[\w+:|%!\w\((?:MISSING|EXTRA|\w+=)"
    r"|\b(?:Hello|Hi|Dear),? (?:undefined|null|None|NaN)\b|[$€£](?:undefined|NaN|null|"
    r"None)\b|\b[Yy]our (?:\w+ ){0,2}?\w+ (?:is|are) (?:undefined|NaN|null|None)\b|#<[A-Z][\w:]*:0x[0-9a-f]+|"
    r"<(?:Future|Task|_io\.\w+|generator|Promise|Element|module) [^>\n]{1,200}>|<Future pending>|"
    r"\b(?:ReadableStream|IncomingMessage) \{"
    r"|\Adict_(?:values|keys|items)\(\[|\A\[<[A-Z]\w*[ >]|\A&\{0x|\A0x[0-9a-f]{6,16}\Z|\[(?:Async)?Function(?:: \w+| \(anonymous\))?\]|\ASymbol\(\w+\)\Z|\[Circular(?: \*\d)?\]"
    # A call of a tool and nothing else.
    r"|\A[a-z]+(?:_[a-z]+)+\((?:\w+ ?=|[\"'{])[^\n]{0,500}\)\Z|\A```tool_(?:code|call)s?\b|\A(?:Calling|Invoking|Using) (?:tool|function):? `?\w+_\w+`?\W*\Z",
    _M | re.DOTALL,
)
# A value that was never set, in the place of a name, a number or a date.
_UNSET = lazy(
    r"\bInvalid Date\b|#undefined\b|\b(?:undefined|NaN)(?:[ ,:/]+(?:undefined|NaN|null)\b)+|\bnull null\b|\bNaN ?(?:%|dollars|USD|EUR|euros?|days|hours|minutes|units|items|miles|km)"
    r"|\b(?:[Ff]rom|[Tt]o|[Oo]n|[Aa]t|[Ff]or|[Bb]y|[Ww]ith|[Hh]ello|[Hh]i|[Dd]ear|[Tt]hank you|[Tt]hanks|[Ww]elcome|[Ww]elcome back),? (?:undefined|NaN|null)\b(?= *(?:[.,!?]|$)| (?:departs|arrives|is|was|will|has|on|at|from|to|and|for|by)\b)"
    r"|^[\w ]{1,30}: (?:undefined|NaN|null)\W*$|\b(?:[Hh]ave|[Hh]as|costs?|owes?|pay|paid) (?:undefined|null|NaN)\b|\b(?:[Tt]hank you|[Hh]ello|[Dd]ear|[Hh]i),? None[.,!]",
    _M,
)
# Words of an answer that speaks of such values.
_VALUE_TALK = lazy(
    r"\b(?:javascript|typescript|python|java|sql|excel|variables?|functions?|(?:object|missing|unknown|access\w*|read\w*) propert(?:y|ies)|propert(?:y|ies) of|pointers?|operators?|values?|types?|columns?|fields?|cells?|math\w*|denominator|slope|limit|"
    r"hypothes[ei]s|void|references?|checks?|compar\w+|returns?|code|objects?|keys?|arrays?|strings?|json|parameters?|arguments?|stands|means|behaviou?r|islands?|methods?|calls?|thrown|\w*exceptions?)\b",
    re.IGNORECASE,
)
# Placeholders that were never filled in.
_TEMPLATES = lazy(
    r"(?-i:%[A-Z][A-Z_]{2,40}%(?!\\))|"
    r"\{\{[-#/^>]? ?[\w.\[\]|' ()\"]{1,60} ?-?\}\}|(?-i:«[A-Z]\w*[a-z_][A-Z]\w*»)|\{%-? ?\w+[^%\n]{0,80}%\}|"
    r"<%=? ?[\w.@ ]{1,60}%>|\$\{[a-zA-Z_][\w.]{0,40}\}|%\(\w{1,40}\)s"
    r"|\[(?:insert|your|add|enter) [\w ]{1,40}\]|(?<![\w\"':{])\{(?:answer|response|result|"
    r"name|user|question|context|output|message|value|amount|date|address|0)\}|(?<![\w\"':{}$\\^/])\{[a-z]{2,20}"
    r"(?:_[a-z]{1,20}){1,3}\}"
    r"|(?<![\w%(\"'])%[sd](?![\w\"'])|\[(?:NAME|DATE|AMOUNT|ADDRESS|ANSWER|RESPONSE|PLACEHOLDER|[A-Z]{2,20}_[A-Z_]{2,30})\]"
    r"|#\{[a-z_][\w.]{0,40}\}|(?-i:__[A-Z][A-Z_]{2,40}__)|<<[A-Z][A-Z_ ]{2,40}>>|<(?:ANSWER|"
    r"PLACEHOLDER|INSERT[\w ]*|YOUR_[\w]+)>"
    # {rent}, {dueDate}, {total:.2f} in a sentence; [Customer Name]; <POLICY_NO>; Hi $FIRSTNAME; @name@
    r"|(?-i:(?<= )\{[a-z]{2,15}(?:[A-Z][a-z]{1,15}){0,2}(?::[,.\ddf%]{1,6})?\}(?=[ .,!?;\n]|\Z))"
    r"|(?-i:\[(?:(?:Customer|Client|Tenant|Landlord|Company|Business|Product|Order|Account|Property|Policy|First|Last|Full|User|Recipient|Employee|Patient|Contact|Due|Start|End)['’]?s? )"
    r"(?:Name|Date|Number|No\.?|ID|Amount|Address|Email|Phone|Title)\](?!\())|(?-i:\b(?:Hi|Hello|Dear) \[[A-Z][\w' ]{1,30}\])"
    r"|(?-i:<[A-Z]{2,20}(?:_[A-Z]{2,20}){1,3}>)|(?-i:\b(?:Hi|Hello|Dear) \$[A-Za-z_]{3,20}\b)|(?<!\S)@[a-z_]{3,20}@|\b(?:hi|hello|dear) <[a-z_ ]{3,20}>",
    re.IGNORECASE,
)
# Words of an answer that explains placeholders instead of leaking one.
_TEMPLATE_TALK = lazy(
    r"\b(?:template|syntax|placeholder|jinja|handlebars|mustache|variable|interpolat\w+|helm|vue|angular|liquid|f-string|"
    r"bash|shell|windows|environment|format\w*|printf|inserts?|replaced?|curly|braces|convention|"
    r"code|javascript|use|write|erb|expression|endpoint|route|url|latex|regex\w*|merge|fields?|editor|written)\b",
    re.IGNORECASE,
)
# A letter that the asker ordered has its blanks to fill in: it is announced, or signed with one.
_DRAFT = lazy(
    r"\A[^\n]{0,150}\b(?:draft|sample|letter|e-?mail|message|wording|text|note|notice|version|reply|script)\b[^\n]{0,80}:\s*\n"
    r"|\A[^\n]{0,80}\bhere(?:['’]s| is| are)\b[^\n]{0,100}:\s*\n|^Subject: |^(?:Sincerely|Best regards|Kind regards|Regards|Best|Yours \w+|Thank you|Thanks),?\s*\n\s*\[",
    re.IGNORECASE | re.MULTILINE,
)
# Text of a designer, and a note to oneself, in the place of an answer.
_FILLER = lazy(
    r"\W*lorem ipsum\b|\W*(?:TODO|FIXME|XXX)\b[: ]+(?:(?:write|insert|add|fill in|implement|replace|return)\b[^\n]{0,30}\b(?:answer|response|reply|text|content|logic|this|here|me|it)|implement|placeholder)\b[^\n]{0,40}\Z"
    r"|\W*(?:insert|your|put|add) (?:answer|response|text|reply|content) here\W*\Z|\W*(?:placeholder|dummy|sample|test) (?:answer|response|text|reply|content)\W*\Z",
    re.IGNORECASE,
)
# What a model thinks before it answers, without the answer.
_THOUGHT = lazy(r"\A<(think|thinking|thought|reasoning|scratchpad)>(?:(?!</\1>).)*(?:</\1>\s*)?\Z", re.DOTALL)
_FENCED = lazy(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)

# Cheap looks before the costly patterns: an answer mostly has none of these.
_LEAK_SIGNS = (
    "[object", "<", "@", "Message", "Completion", "Block(", "RunResult(", "Action:", "[TOOL", "System.", "Promise {",
    "functions.", "INST]", "[native", "=", "Ok(", "Err(", "Some(", "map[", "%!",
    "#<", "Stream {", "[Function", "[Async", "[Circular", "Symbol(", "dict_", "tool_", "_", "tool:", "function:",
)  # fmt: skip
_TEMPLATE_SIGNS = ("{", "[", "<", "«", "%(", "__", "%s", "%d", "@")
# "%FIRST_NAME%" and "$FIRSTNAME", and not a share or a price.
_PERCENT_NAME = lazy(r"%[A-Z]")
_DOLLAR_NAME = lazy(r"\$[A-Za-z_]{3}")
# Searching for one character takes a tenth of the time that a word takes; nearly every sign has one of these in it.
_MARKS = "[<@={%#_`(:«"
_WORDS = ("undefined", "NaN", "null", "None", "Invalid Date", "0x")
_FILLER_FIRST = frozenset({"lorem", "todo", "todo:", "fixme:", "xxx", "insert", "your", "put", "add", "placeholder", "dummy", "sample", "test"})  # fmt: skip


def leaked(head: str) -> DetectedFailure | None:
    """Raw objects, tool calls, unset values and unfilled placeholders, outside of what is shown as code."""
    if head.partition(" ")[0].lower() in _FILLER_FIRST:
        filler = _FILLER.match(head)
        if filler:
            return DetectedFailure("malformed", filler.group()[:200], 0, filler.end())
    named = "$" in head and _DOLLAR_NAME.search(head) is not None
    unset = any(map(head.__contains__, _WORDS))
    if not unset and not named and not any(map(head.__contains__, _MARKS)):
        return None
    leaky = unset or any(map(head.__contains__, _LEAK_SIGNS))
    if (
        not leaky
        and not named
        and not any(map(head.__contains__, _TEMPLATE_SIGNS))
        and not ("%" in head and _PERCENT_NAME.search(head))
    ):
        return None
    if head.startswith("```tool_"):
        return DetectedFailure("malformed", "a tool call instead of an answer", 0, len(head))
    if head[0] == "<" and _THOUGHT.match(head.rstrip()):
        return DetectedFailure("malformed", "thoughts without an answer", 0, len(head))
    prose = _FENCED.sub(lambda code: " " * len(code.group()), head) if "`" in head else head
    found = _LEAKS.search(prose) if leaky else None
    if found:
        around = len(prose.split())
        quoted = prose[found.start() - 1 : found.start()] in {'"', "“", "'"}
        if around > (8 if quoted else 25) and re.search(
            r"\b(?:means|javascript|because|python|prints?|shows?|fix|token|you)\b", prose, re.IGNORECASE
        ):
            return None
        return DetectedFailure("malformed", found.group()[:200], found.start(), found.end())
    found = _UNSET.search(prose) if unset else None
    if found and not _VALUE_TALK.search(_UNSET.sub(" ", prose)):
        return DetectedFailure("malformed", found.group()[:200], found.start(), found.end())
    found = _TEMPLATES.search(prose)
    if found and not _TEMPLATE_TALK.search(_TEMPLATES.sub(" ", prose)) and not _DRAFT.search(prose):
        return DetectedFailure("malformed", found.group()[:200], found.start(), found.end())
    return None
