"""Whether a short reply says only that something failed: who failed × how × at what, and no answer beside it.

Wordings of a failure have no end, their build has: the bot or a part of its machinery, a verb of failing, an operation
or a cause. A reply is a failure if one of its sentences is built so and the others only apologise, promise or send away.
"""

# ruff: noqa: E501 — groups of words read better as one line than as many.

import re

__all__ = ["answers_besides", "failing_sentence"]

# Longer replies explain; a notice does not.
_LONGEST = 700
_SPLIT = re.compile(r"(?<=[.!?…])[\"”)]*\s+|(?<=[。！？])|\s*[\n;]\s*| [–—-]+ |—")

# Machinery that is nobody's but the bot's, and words that are so only beside one of the technical words.
_OWN = (
    r"(?:tools?|lookup|look-up|quer(?:y|ies)|databases?|db|apis?|servers?|backend|back end|endpoint|plugin|"
    r"pipeline|knowledge base|(?:vector|document|data) ?(?:store|base|source)s?|retriever|chatbot|gateway|cluster|"
    r"tool call|function call|api call|call to [\w .]{1,30}|llm|language model|upstream|search(?: engine| index)?|web ?site|host|"
    r"[a-z]+_[a-z_]+(?:\(\))?)"
)
_SHARED = (
    r"(?:systems?|services?|connection|network|request|process|model|agent|assistant|application|app|function|job|"
    r"operation|platform|session|integration|index|provider|attempts?|tr(?:y|ies)|call|message|question|site|"
    r"retrieval|response|stream|generation|worker|component|module)"
)
_TECHNICAL = (
    r"(?:documents?|search|file|data|records?|lookup|retrieval|internal|remote|external|upstream|downstream|ai|llm|"
    r"language|web|chat|back-?end|underlying|storage|knowledge|vector|embedding|indexing|third-party|network|api|"
    r"database|tool|function|internet|wi-?fi|last|first|second|current|information|inference|cloud|property|lease|listings?|core|main|"
    r"automated|online|recommendation|ticketing|booking|account|server|computing|requested|required|entire|whole)"
)
# Systems and services of a house or a town, which fail without the bot.
_PHYSICAL = (
    r"(?:heating|hvac|sprinkler|alarm|water|septic|sewer|boiler|plumbing|irrigation|elevator|lift|electric\w*|cooling|security|fire|gas|"
    r"drainage|ventilation|bus|train|mail|postal|trash|cleaning|valet|shuttle|laundry|phone|cable|power|permit|utility|bank\w*['’]s|city['’]s|"
    r"county['’]s|room|snow|lawn|concierge|court|school|repair|delivery|customer|refund|solar|pump|intercom)\b"
)
_MACHINE = (
    r"(?:the |our |my |your |this |that |an? |one of (?:the|our|my) |all |each |every |both |these |those |some of (?:our|the) )?"
    rf"(?:(?:[\w'’-]+ ){{0,3}}?{_OWN}|(?:{_TECHNICAL} ){{0,3}}{_SHARED}|(?:(?!{_PHYSICAL})[\w'’-]+ ){{0,2}}?(?:systems?|services?|platform|integration|module|portal))"
    r"(?: (?:we|i) (?:use|rely on|need|depend on)[\w ]{0,30}?| (?:for|of|to|behind|against|in|on) (?:this|that|your|the|my|our) [\w-]+(?: \w+)?)?"
)
_HOW = r"(?: (?:currently|temporarily|still|just|again|unexpectedly|now|also|all|simply|repeatedly|apparently|momentarily|presently|a bit|a little|too|very))*"
_TROUBLE = (
    r"(?:errors?|issues?|problems?|snags?|glitch(?:es)?|hiccups?|exceptions?|difficult(?:y|ies)|trouble|failures?|outage|"
    r"time-?outs?|roadblock|wall|bump|bug|interruption|disruption|malfunction|fault|connectivity|downtime)"
)
_STATE = (
    r"(?:down|offline|unavailable|inaccessible|unreachable|unresponsive|overloaded|overwhelmed|broken|stuck|busy|"
    r"timing out|failing|crashing|acting up|misbehaving|at (?:full )?capacity|out of service|throttled|rate[- ]limited|"
    r"under (?:maintenance|heavy load)|undergoing [\w ]{0,20}maintenance|degraded|"
    r"unstable|flaky|disconnected|exhausted|not (?:available|accessible|reachable|responding|working|functioning|answering|loading|cooperating|operational)|"
    rf"(?:having|experiencing|facing|suffering) (?:[\w-]+ ){{0,4}}(?:{_TROUBLE}|demand|traffic|load|volume|delays))"
)
_NOT = r"(?:n['’]t| not)"
_BE = r"(?:is|are|was|were|has been|have been|remains?|went|seems?|appears?|looks?|['’]s|['’]re|may be|might be)"
_ACT = (
    r"(?:failed|fails|crashed|timed out|times out|hung|froze|errored(?: out)?|died|broke|went (?:down|offline)|gave up|"
    r"dropped|disappeared|(?:is|are|was) taking (?:too long|longer|forever|a while)|took too long|ran out of|stopped (?:responding|working)|got (?:stuck|interrupted|cut off|disconnected)|"
    r"(?:kept|keeps|keep|is|are|was|were) (?:on )?(?:failing|crashing|timing out|erroring|returning errors)|"
    rf"(?:did|does|is|are|was|were|has|have|do|would|wo|could|can|ca){_NOT} (?:currently )?(?:respond(?:ed|ing)?|work(?:ed|ing)?|"
    r"load(?:ed|ing)?|go through|gone through|return(?:ed)?|come back|complete[d]?|finish(?:ed)?|succeed(?:ed)?|answer(?:ed|ing)?|"
    r"start|reply|be (?:reached|completed|processed|run|executed|loaded|contacted|established|handled|fulfilled|finished|parsed|served))|"
    r"cannot be (?:reached|completed|processed|run|executed|contacted|handled)|never (?:came back|responded|returned|answered|finished|completed)|"
    rf"(?:returned|gave|threw|raised|reported|produced|resulted in|ended (?:in|with)|came back with|responded with|is returning|is throwing|are returning|keeps? returning) (?:(?:me|us) )?(?:an? |some |the following )?(?:[\w-]+ ){{0,3}}?(?:{_TROUBLE}|nothing|no (?:output|response|reply|usable \w+)|[45]\d\d|no response|garbage|invalid (?:json|response|data))|"
    r"(?:was|were|has been|got|is|has just been) (?:interrupted|cancell?ed|rejected|aborted|killed|refused|lost|dropped|terminated|"
    r"closed|reset|disconnected|cut off|throttled|unsuccessful|rate[- ]limited)|(?:has )?exceeded (?:the|its|our|your) [\w -]{0,30}(?:limit|time|quota|deadline))"
)
# What may come after the verb; a subject matter ("by the utility company", "on weekends") makes it a fact of the world.
_TAIL = (
    r"(?=\W*$|[,:!]|\s+\(|\s+(?:right now|at the moment|at this (?:time|moment|point)|currently|for (?:maintenance|now|some reason|unknown|an unknown)|so\b|and\b|whenever (?:i|we)\b|(?:each|every) time|"
    r"but\b|due to|because|as\b|since\b|while|when i|when we|when (?:try|process|fetch|look|search|retriev|call|access)\w*|with (?:an?|the|status|error|code|http)\b|after|before (?:it|i|returning|producing|generating)|again|"
    r"temporarily|today|on (?:our|my|their|its) (?:end|side)|unexpectedly|in time|within|from (?:our|my|the) (?:end|side|server)|to (?:respond|complete|return|load|start|answer|connect|process|execute|fetch|retrieve|work|finish|initiali[sz]e)|"
    r"yet|twice|once|soon|halfway|mid\w*|part ?way|during (?:the |your |this |processing|execution)|memory|multiple times|several times|\w+ times|or\b|which|preventing|until))"
)
_OP = (
    r"(?:access|reach|connect|contact|load|retriev|fetch|pull|look|process|complet|generat|respond|answer|open|read|quer|search|"
    r"run|execut|get|finish|display|produc|perform|communicat|talk|call|handl|check|establish|fulfil|us(?:e|ing)|provid|find|"
    r"locat|return|help|assist|tell|show|bring|give|giving|verify|confirm|do|load|send|submit|carry)\w*"
)
_NOW = r"(?:right now|at the moment|at this (?:time|moment|point)|just now|currently|for the moment|presently|today)"
_CAUSE = (
    r"(?:(?:due to|because|owing to|thanks to|since|as|after|on account of|from)\b|:).{0,50}?\b(?:technical|errors?|outage|glitch|time-?out|timed out|exception|"
    r"failures?|connectivity|network|server|database|back-?end|apis?|tools?|systems?|services?|connection|overload|maintenance|unavailable|offline|"
    r"rate limit|bug|malfunction|problem on (?:our|my)|issue on (?:our|my)|went wrong|crash\w*)\b"
)
_CANNOT = (
    rf"(?:unable to|not able to|(?:could|ca|can|was|were|am|are|did|do){_NOT}(?: (?:able|seem|manage|currently|successfully|even))*(?: to)?|cannot|failed to|"
    r"(?:having|had|have) (?:some |a bit of |a little |a lot of )?(?:trouble|difficulty|difficulties|problems|issues|a hard time|a problem)(?: (?:with|in))?|"
    r"struggling to|(?:did|have)n['’]t managed? to|(?:is|it's|it’s) (?:not possible|impossible)(?: for me)? to|not possible to)"
)
_WE = (
    r"\b(?:i|we)(?: am| are| was| were| have| had|['’](?:m|re|ve|d))?(?: been| seem to be| appear to be| seem to have)?"
    + _HOW
)
_BUILDS = re.compile(
    # The machinery is in a bad state or did a bad thing.
    rf"(?:^|\b(?:but|because|as|since|and|so|that|seems|appears|like|when|while|because of)[,]? |[,:] )(?:{_MACHINE}|(?<=but )it|(?<=and )it|(?<=but )they){_HOW}(?: {_BE}(?: to be| to have(?: been| gone)?| like)?{_HOW} (?:an? )?{_STATE}| (?:is|are|was|were)n['’]t{_HOW} (?:available|accessible|reachable|functioning|loading|cooperating|operational|up|online|running)|(?: has| have| had| seems? to have| appears? to have)?{_HOW} {_ACT}){_TAIL}"
    rf"|^{_MACHINE} (?:is|are|was|were){_HOW} (?:unable|not able) to {_OP}\b|^lost (?:the )?connection\b"
    # The bot cannot operate: its own machinery, for now, or for a technical cause.
    rf"|{_WE} {_CANNOT} (?:\w+ly )?{_OP}\b(?: (?!not\b)[\w'’,-]+){{0,12}}? (?:{_NOW}|{_CAUSE})"
    rf"|{_WE} {_CANNOT} (?:\w+ly )?(?:access|reach|connect|contact|load|quer|communicat|talk|establish|us|call|get (?:a |any |an )?(?:response|answer|reply|result|data|connection)|get (?:in|through))\w*(?: up| in)?(?: to| with| from| of| into| through)? (?:[\w'’-]+ ){{0,3}}?(?:{_OWN}|{_TECHNICAL} (?:systems?|services?|index|provider)|(?:the|our) (?:system|service|network|index|model))\b(?! (?:room|closet|rack))"
    rf"|{_WE} {_CANNOT} (?:\w+ly )?(?:process|complet|fulfil|handl|finish|execut|perform|carry out)\w* (?:your|this|that|the) (?:request|search|query|question|message|operation|task|lookup|action|call)"
    rf"|{_WE} {_CANNOT} (?:generat|produc|creat|return)\w* (?:a|an|any|the|your) (?:\w+ )?(?:response|answer|reply|output|result)"
    rf"|\b(?:i|we)(?:['’]ve| have)? (?:tried|attempted|was trying|were trying|made [\w ]{{1,20}}attempts?)\b.{{0,90}}?\b(?:but|and|however)\b.{{0,60}}?(?:{_ACT}|no response|{_TROUBLE}|no luck|{_STATE})\b"
    # Somebody ran into trouble.
    rf"|(?:{_WE}|^{_MACHINE}(?: has| have| had)?{_HOW}) (?:hit|ran into|run into|running into|encounter(?:ed|ing)|came across|got|getting|received?|receiving|fac(?:ed|ing)|see(?:ing)?|keep (?:getting|seeing|hitting|running into)|kept (?:getting|seeing|hitting|running into)|met|suffer(?:ed|ing)|experienc(?:ed|ing)|having) (?:an? |some |the following |repeated |several |multiple )?(?:[\w-]+ ){{0,3}}?(?:{_TROUBLE}|(?:demand|traffic|load|volumes?)(?: of \w+)?){_TAIL}"
    rf"|(?:{_WE}) (?:hit|ran into|running into|encountered|came across) (?:an? |some )?(?:[\w-]+ ){{0,3}}?{_TROUBLE} (?:\w+ing\b|in the process|in trying)"
    rf"|\b(?:an?|some|the following) (?:(?!accounting|rounding|clerical|typing)[\w-]+ ){{0,3}}?{_TROUBLE} (?:has |have |had |just )?(?:occurr?ed|happened|arose|came up|cropped up|prevent(?:ed|s)|is prevent\w+|stopped|interrupted|is keeping|kept|on (?:our|my) (?:end|side)){_TAIL.replace('|until', '|until|me|us|the (?:request|search|system|tool)|from|it')}"
    rf"|^(?:there(?: was| is| were| has been|['’]s| seems to be| appears to be| must have been)) (?:currently |also )?(?:an? |some )?(?:(?!accounting|rounding|clerical)[\w-]+ ){{0,3}}?{_TROUBLE} (?:on (?:our|my|the server) |(?:with|in|at|while|when|during|connecting|reaching|accessing|process|fetch|retriev|load|generat|call|execut)\w* (?:[\w'’-]+ ){{0,4}}?(?:{_OWN}|{_SHARED}|answer|reply)\b)"
    rf"|\bsomething(?: has| just|['’]s| seems to have| appears to have| must have| is)?{_HOW} (?:went|gone|go|gone|going) (?:wrong|awry|sideways|amiss){_TAIL.replace('|until', '|in (?:the|our|my) (?:back|process)')}"
    rf"|\bsomething(?: has| just| seems to have| is|['’]s)? (?:broke|broken|failed|crashed|blew up|not right|{_STATE}|is{_NOT} (?:working|right)){_TAIL}|\bthings? (?:went|have gone) wrong{_TAIL}"
    rf"|^(?:that|this|it|everything)(?: request| one| action| step)? (?:did{_NOT} (?:work|go through|go as planned|succeed|load|complete)|failed|timed out|went wrong|is taking (?:longer|too long)|took (?:too long|longer)){_TAIL.replace('|until', '|than|out')}"
    rf"|\bit(?: is|['’]s)? (?:took|taking|takes) (?:too long|longer than (?:expected|allowed|usual))|^no (?:response|answer|reply|output|connection|result)(?: was| could be| has been)?(?: (?:came|received|generated|produced|returned|established)(?: back)?)?(?: from (?:[\w'’-]+ ){{0,3}}?(?:{_OWN}|{_SHARED}))?\W*$"
    rf"|\b(?:i|we)(?:['’]ve| have)? lost (?:the|my|our) (?:\w+ ){{0,2}}?connection|\b(?:i|we)(?:['’]ve| have)?(?: \w+){{0,3}}? (?:reached|hit|exceeded|ran out of|used up) (?:the |my |our |its )?(?:[\w-]+ ){{0,4}}?(?:steps|iterations|turns|attempts|retries|tool calls|tokens|time)\b{_TAIL}"
    rf"|\b(?:usage|rate|message|request|token|daily|monthly|hourly|api|credit|free|plan)s? (?:\w+ )?(?:limit|quota|cap|allowance)s?(?: has been| was| is| have been)? (?:reached|exceeded|hit|used up|exhausted){_TAIL}|\b(?:sent|made|received|getting|receiving|submitted) too many (?:requests|messages|calls|questions)"
    rf"|^(?:your |the |this )?(?:prompt|input|context|message|request|conversation|document)(?: length| size)? (?:is|was) too (?:long|large|big)(?:\W*$|: | for (?:the|this) model)|^(?:http )?(?:status|error|response)(?: code)?:? [45]\d\d\W*$"
    rf"|^(?:due to|because of|owing to) (?:an? |some |the )?(?:[\w-]+ ){{0,3}}?(?:{_TROUBLE}|demand|traffic|load|maintenance),? .{{0,20}}?(?:{_CANNOT}|{_ACT}|{_STATE})"
    rf"|^(?:an? )?(?:unexpected|unknown|internal|fatal|general|generic|system|server|network|runtime|technical|temporary|critical|application|processing|unspecified) (?:[\w-]+ )?{_TROUBLE}(?: detected| encountered)?\W*$"
    r"|^(?:[\w-]+ )?(?:execution|processing|generation|run|agent|workflow|chain|conversation|task|loop)(?: was| has been| is)? (?:halted|stopped|aborted|terminated|cancell?ed|interrupted)(?=\W*$|:| due| because| after| by )"
    r"|^(?:your |the |an? )?(?:(?:api|access|auth\w*|bearer|session) )?(?:keys?|tokens?|credentials?|login)(?: (?:is|are|was|were|has|provided))* (?:not valid|invalid|expired|missing|revoked|rejected)"
    rf"|^(?:oops|whoops|uh[- ]oh|oopsie|yikes|d['’]oh|ouch)\b"
    rf"|{_WE} [\w ]{{0,60}}?\b(?:by|due to|because of|with|from) (?:an? |some )?(?:[\w-]+ ){{0,2}}?(?:system|server|technical|internal|network|database|unexpected|connection|tool|api|backend) {_TROUBLE}"
    rf"|^(?:unable to|failed to|not able to|could{_NOT}|cannot|can['’]t) (?:fetch|load|retrieve|connect|reach|process|query|execute|generate|parse|authenticate|contact)\b|\bhaving a (?:moment|bad day)"
    rf"|^(?:an? )?(?:temporary|network|connection|system|server|technical|database|dns) {_TROUBLE}(?: in| with| while| during|\W*$)"
    # Headlines: "Lookup failed", "Error fetching …", "Failed to …", "Unable to reach …".
    rf"|^(?:[\w-]+ ){{0,2}}?(?:{_OWN}|{_SHARED}|execution|upload|download|fetch|handshake|sync|rendering|name resolution|authentication|authorization|processing|loading|fetching|connecting|retrieval|generating|searching|initiali[sz]ation|parsing|generation)(?: {_TROUBLE}|(?: has)? (?:failed|crashed|aborted|timed out|interrupted|refused|unavailable|unreachable|denied|not responding|terminated|expired)){_TAIL}"
    rf"|^(?:unable|failed|not able|could{_NOT}|cannot|can['’]t) (?:to )?(?:{_OP}) .{{0,60}}?(?:{_OWN}|{_NOW}|{_CAUSE}|the (?:system|service|network|index|model|response)\b|your (?:request|query|question|message))"
    rf"|^{_TROUBLE} (?:while |when )?(?:fetch|access|process|retriev|load|connect|generat|execut|call|search|query|read|open|pars|contact|reach|communicat|perform|look|complet|wait)ing\b"
    r"|^(?:the |my |our )?connection to [\w ]{1,30} (?:lost|refused|failed|closed|dropped)\W*$|^something unexpected (?:has )?(?:happened|occurred)\W*$",
    re.IGNORECASE,
)
_FOREIGN = re.compile(
    # Spanish
    r"\bno (?:\w+ ){0,2}?(?:puedo|pude|pudo|podemos|pudimos|podido|logr[eéoó]|consig[ou]|fue posible|es posible|se puede)\b[\w ]{0,30}?(?:acced|conect|proces|complet|consult|recuper|carg|obten|respond|ejecut|establec|contact|comunic|gener)\w*"
    r"(?=.{0,80}(?:base de datos|servidor|servicio|sistema|solicitud|petici|consulta|momento|ahora|error|problema|t[eé]cnic|conexi|herramienta|respuesta))"
    r"|(?:ha|he|hemos|se ha|se) ?(?:ocurrido|habido|producido|surgido|encontrado|produjo|tenido|present\w+) (?:un|una|alg[uú]n|algunos)? ?(?:\w+ )?(?:error|problema|fallo|incidencia|dificultad)\w*"
    r"|(?:estoy|estamos|tengo|tenemos|tuve|tuvimos|est[aá]) (?:\w+ ){0,2}?(?:problemas?|dificultad(?:es)?|errores)\b(?=.{0,60}(?:acced|conect|t[eé]cnic|sistema|servidor|servicio|base|momento|conexi))"
    r"|(?:servicio|servidor|sistema|base de datos|herramienta|b[uú]squeda|consulta|solicitud|petici[oó]n|conexi[oó]n)(?: [\w]+){0,3}? (?:no (?:est[aá] disponible|responde|respondi[oó]|funciona|se pudo|pudo|se ha podido)|ha fallado|fall[oó]|ca[ií]do|fuera de servicio|en mantenimiento|sobrecargado|agot[oó]|ha expirado|super[oó])"
    r"|algo (?:ha )?(?:sali[oó]|ido|salido|fue) mal"
    r"|(?:problemas?|dificultades|fallos?) t[eé]cnic|technische[nrs]? (?:schwierigkeiten|probleme?|st[oö]rung\w*|fehler)|(?:probl[eè]mes?|difficult[eé]s|incidents?) techniques?"
    # German
    r"|(?:ist|sind|trat|traten|gab|gibt|kam|habe|haben|hat)\b[\w ]{0,40}?(?:\w*fehler|\w*problem\w*|\w*st[oö]rung\w*|schwierigkeiten)\b(?= ?(?:auf|aufgetreten|beim|bei|mit (?:der|dem|unser)|gekommen|festgestellt|$|[.!,]))(?!.{0,20}(?:im vertrag|im formular|in der abrechnung))"
    r"|(?:kann|konnte|k[oö]nnen|konnten)\b[\w ]{0,50}?(?:nicht|keine)\b[\w ]{0,30}?(?:zugreifen|erreichen|verbinden|verarbeite[nt]|abrufen|laden|herstellen|abgerufen|geladen|hergestellt|abschlie(?:ß|ss)en|ausf[uü]hren|ausgef[uü]hrt|beantworte[nt]|durchf[uü]hren|erreicht|abgeschlossen)\b"
    r"|(?:verbindung|anfrage|abfrage|suche|datenbank|server|dienst|werkzeug|system|tool)\b[\w ]{0,40}?(?:fehlgeschlagen|abgelehnt|nicht (?:erreichbar|verf[uü]gbar)|[uü]berlastet|unterbrochen|antwortet nicht|reagiert nicht|abgebrochen|gescheitert|ausgefallen|hat nicht (?:geantwortet|reagiert))"
    r"|schief ?(?:gelaufen|gegangen)"
    # French
    r"|(?:n['’]arriv(?:e|ons)|ne parvien[st]|ne parvenons|n['’]ai|n['’]avons|ne peu[xt]|ne pouvons|n['’]a)\b(?: pas| pu| r[eé]ussi)*(?: [aà])?(?: me| nous| se)? (?:acc[eé]d|connect|trait|charg|r[eé]cup[eé]r|joindre|contact|obten|ex[eé]cut|termin|g[eé]n[eé]r|effectu|abouti)\w*"
    r"(?=.{0,80}(?:base|serveur|service|syst[eè]me|demande|requ[eê]te|moment|instant|erreur|probl[eè]me|technique|r[eé]ponse|outil|connexion)|ir\b)"
    r"|(?:une erreur|un probl[eè]me|un incident|une panne|un souci|des probl[eè]mes|des difficult[eé]s)(?: \w+){0,2} (?:s['’]est|s['’]|est|a [eé]t[eé]|emp[eê]ch|nous|m['’])"
    r"|(?:rencontr(?:e|ons|[eé])|ai|avons|[eé]prouv\w+) (?:actuellement )?(?:une erreur|un probl[eè]me|des (?:probl[eè]mes|difficult[eé]s|soucis)|un souci)\b"
    r"|(?:service|serveur|syst[eè]me(?! d)|outil|requ[eê]te|recherche|connexion|base de donn[eé]es|demande)(?: [\w]+){0,3}? (?:est (?:\w+ )?(?:indisponible|surcharg[eé]|hors service|en panne|inaccessible|injoignable|en maintenance)|n['’]est pas (?:disponible|accessible)|ne r[eé]pond(?:ent)? p(?:as|lus)|n['’]a pas (?:r[eé]pondu|abouti|pu)|a [eé]chou[eé]|a expir[eé])"
    r"|s['’]est mal pass"
    # Japanese
    r"|(?:エラー|問題|障害|不具合|例外)が(?:発生|起き|起こ|生じ)|(?:接続|アクセス|取得|処理|検索|応答|実行|読み込み|生成|回答|完了|通信)(?:を|に|が|する(?:こと)?が)?(?:でき(?:ません|ない|なかった)|失敗|(?:行|おこな)えません)"
    r"|(?:サーバー?|サービス|システム|データベース|ツール)(?:は|が|に|から|の|を)[^。]{0,20}?(?:利用できません|ご?利用(?:いただけ|になれ)ません|使用できません|応答(?:が|し)|停止|ダウン|混(?:雑|み合)|メンテナンス|つながり|繋がり)|時間(?:切れ|がかかりすぎ)|うまくいきません|タイムアウト(?:しま|にな|が)",
    re.IGNORECASE,
)
# A sentence that adds nothing: regret, another try, whom to ask, what was promised, what was about to be done.
_FILLER = re.compile(
    r"\btr(?:y|ies|ying)\b.{0,30}\bagain|\bretry|another (?:try|go|shot|attempt)|resend|re-?submit|check back|come back|\blater\b|\bcontact|reach out|\bsupport\b|"
    r"help ?desk|administrator|apolog|\bsorry\b|inconvenience|patience|bear with|\bthank|notified|looking into|look into|working (?:on|to)|"
    r"\bengineers?\b|\b(?:reference|request|error|correlation|trace|incident|session|ticket)[ -]?(?:id|code|number|#)|refresh|reload|rephras|reword|"
    r"\bwait\b|hold on|\bask\b.{0,20}again|try (?:again|tomorrow)|tomorrow|upgrade|your plan|nothing to show|let me know|would you like|if (?:the|this) (?:problem|issue|error)|persist|check your|give (?:it|me|us)|a (?:moment|few)|"
    r"(?:can(?:no|['’])t|could(?: not|n['’]t)|unable to|not able to|without)\b.{0,40}\b(?:answer|help|provide|give|tell|assist|look|confirm|complete|continue|respond|retrieve|show|say)|"
    r"^(?:hi|hello|let me|one moment|checking|searching|looking|i(?:['’]ll| will) (?:look|check|search|try)|i understand|great question|thanks|ok(?:ay)?\b|hm+)|"
    r"we(?:['’]re| are) (?:on it|aware|back)|back (?:soon|shortly)|shortly|"
    r"int[eé]nt\w+|m[aá]s tarde|disculp|lo siento|lament|perd[oó]n|bitte|sp[aä]ter|entschuldig|leid\b|leider|r[eé]essay|plus tard|d[eé]sol|excus|veuillez|merci|gracias|danke|"
    r"申し訳|すみません|しばらく|もう一度|再度|お待ち|お試し|後ほど|ご迷惑|サポート|お問い合わせ",
    re.IGNORECASE,
)
# Figures of an answer: money, dates, clock times, shares, addresses.
_FACT = re.compile(
    r"[$€£¥]\s?\d|\d ?(?:%|percent|euros?|dollars?)|\b\d{1,3}(?:,\d{3})+\b|\b\d{1,2}:\d\d\b|\b(?:19|20)\d\d\b|"
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december)\b|"
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\.? \d|\d+ [A-Z]\w+ (?:St|Ave|Rd|Street|Avenue|Road|Ln|Dr|Blvd)\b",
    re.IGNORECASE,
)
# Talk about errors in general, or about somebody else's.
_TALK = re.compile(
    r"\b(?:means?|usually|often|typically|generally|whenever (?!i\b|we\b)|indicates?|refers? to|occurs? when|caused by|"
    r"(?:tenants?|landlord)(?!['’]?s? ?[-_]?(?:\w+ )?(?:database|db|records?|lookup|portal|search|services?|systems?|api|tools?|data|files?|info\w*|index))|seller|buyer|contractor|inspect(?:ion|or)|yesterday|last (?:night|week|month|year))\b|"
    r"^\W*(?:if|when|whenever|to (?:fix|avoid|solve)|in case|you (?:can|should|could|may|must)|make sure|restart|check (?:that|whether)|once)\b|[\"“«`]",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:hm+|unfortunately|sorry(?: about that| for (?:the|that|this|any) \w+)?|(?:my |our |many )?apologies(?: for (?:the|any|this) \w+)?|oh no|ah|well|hi(?: there)?|hello|regrettably|sadly|"
    r"i(?:['’]m| am) (?:so |very |really |terribly )?(?:sorry|afraid)(?: about that)?|we(?:['’]re| are) (?:so |very )?(?:sorry|afraid)|i apologi[sz]e(?: for (?:the|any|this) \w+)?|we apologi[sz]e(?: for (?:the|any|this) \w+)?|"
    r"(?:it |this )?(?:looks|seems|appears)(?: like| as if| as though| that)?|it would (?:seem|appear)(?: that)?|but|however|that|because|and|so|also|note|notice|warning|heads up|at the moment|right now|currently|it turns out(?: that)?)\b[,.!:–—\s-]*+)++",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"\b(?:but|however|nevertheless|still|that said|meanwhile|fortunately|though)\b,?", re.IGNORECASE
)


def _sentences(text: str) -> list[tuple[int, str]]:
    """The sentences of a text, each with its position."""
    parts, at = [], 0
    for cut in _SPLIT.finditer(text):
        if text[at : cut.end()].strip():
            parts.append((at, text[at : cut.start()]))
        at = cut.end()
    if text[at:].strip():
        parts.append((at, text[at:]))
    return parts


def _fails(sentence: str) -> bool:
    """One sentence says that the bot or its machinery failed, and nothing else."""
    if _TALK.search(sentence):
        return False
    lead = _LEAD.match(sentence)
    said = sentence[lead.end() :] if lead else sentence
    found = _BUILDS.search(said) or _FOREIGN.search(said)
    if found is None:
        return False
    rest = said[found.end() :]
    turn = _TURN.search(rest)
    if turn is None:
        return True
    after = rest[turn.end() :]
    return len(after.split()) < 4 or bool(_FILLER.search(after) or _BUILDS.search(after.strip()))


def failing_sentence(text: str) -> tuple[int, int] | None:
    """The span of the sentence that says that something failed, if the reply holds no answer beside it."""
    if len(text) > _LONGEST:
        return None
    found: tuple[int, int] | None = None
    other = 0
    for at, sentence in _sentences(text):
        # The cheap looks come first: most answers give a figure in their first sentence.
        fact = _FACT.search(sentence) is not None
        if not fact and _fails(sentence.strip()):
            found = found or (at, at + len(sentence))
        elif (fact and not found) or not _FILLER.search(sentence):
            # Six words more are a label or a closing, not an answer.
            other += len(sentence.split()) + 6 * fact
            if other > 6:
                return None
    return found


def answers_besides(text: str) -> bool:
    """Whether a sentence gives figures or dates although the text begins like a notice."""
    return any(
        _FACT.search(sentence) and not _FILLER.search(sentence) for _, sentence in _sentences(text[:_LONGEST])
    )
