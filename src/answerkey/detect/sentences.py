"""Notices in Spanish, German, French and Japanese, by their build: who failed, how, at what; and whether an answer is beside.

English is read by `failing`; these languages put verbs and negations elsewhere, so their sentences have patterns of their own.
A reply is a failure if one of its sentences is built so and the others only apologise, promise or send away.
"""

# ruff: noqa: E501 — lists of phrases.

import re

from answerkey.text.lazy import lazy

__all__ = ["answers_besides", "failing_sentence"]

# Longer replies explain; a notice does not.
_LONGEST = 700
_SPLIT = lazy(r"(?<=[.!?…])[\"”)]*\s+|(?<=[。！？])|\s*[\n;]\s*| [–—-]+ |—")
_FOREIGN = lazy(
    # Spanish
    r"\bno (?:\w+ ){0,2}?(?:puedo|pude|pudo|podemos|pudimos|podido|logr[eéoó]|consig[ou]|"
    r"fue posible|es posible|se puede)\b[\w ]{0,30}?(?:acced|conect|proces|complet|consult|"
    r"recuper|carg|obten|respond|ejecut|establec|contact|comunic|gener)\w*"
    r"(?=.{0,80}(?:base de datos|servidor|servicio|sistema|solicitud|petici|consulta|momento|"
    r"ahora|error|problema|t[eé]cnic|conexi|herramienta|respuesta))"
    r"|(?:ha|he|hemos|se ha|se) ?(?:ocurrido|habido|producido|surgido|encontrado|produjo|"
    r"tenido|present\w+) (?:un|una|alg[uú]n|algunos)? ?(?:\w+ )?(?:error|problema|fallo|"
    r"incidencia|dificultad)\w*"
    r"|(?:estoy|estamos|tengo|tenemos|tuve|tuvimos|est[aá]) (?:\w+ ){0,2}?(?:problemas?|"
    r"dificultad(?:es)?|errores)\b(?=.{0,60}(?:acced|conect|t[eé]cnic|sistema|servidor|"
    r"servicio|base|momento|conexi))"
    r"|(?:servicio|servidor|sistema|base de datos|herramienta|b[uú]squeda|consulta|solicitud|"
    r"petici[oó]n|conexi[oó]n)(?: [\w]+){0,3}? (?:no (?:est[aá] disponible|responde|respondi[oó]|"
    r"funciona|se pudo|pudo|se ha podido)|ha fallado|fall[oó]|ca[ií]do|fuera de (?:servicio|l[ií]nea)|"
    r"en mantenimiento|sobrecargado|agot[oó]|ha expirado|super[oó])"
    r"|(?:tard[oó]|ha tardado|est[aá] tardando) (?:demasiado|m[aá]s de)|(?:super|agot|exced)\w+ (?:el )?(?:tiempo|l[ií]mite)|"
    r"tiempo (?:de (?:espera|respuesta) )?(?:agotado|superado|excedido)"
    r"|algo (?:ha )?(?:sali[oó]|ido|salido|fue) mal"
    r"|(?:problemas?|dificultades|fallos?) t[eé]cnic|technische[nrs]? (?:schwierigkeiten|"
    r"probleme?|st[oö]rung\w*|fehler)|(?:probl[eè]mes?|difficult[eé]s|incidents?) techniques?"
    r"|demasiad[ao]s (?:peticiones|solicitudes|consultas|mensajes)|(?:alcanzad|superad|excedid|agotad)o (?:el|su|tu) l[ií]mite"
    r"|ha (?:perdido|interrumpido|cortado|cerrado) la conexi[oó]n|conexi[oó]n (?:perdida|interrumpida|cortada)|memoria insuficiente|"
    r"(?:no hay|sin) (?:suficiente )?memoria|(?:devuelto|devolvi[oó]) un error"
    # German
    r"|fehler (?:zur[uü]ckgegeben|gemeldet|geliefert|ausgel[oö]st|verhindert)|(?:nicht gen[uü]gend|zu wenig) (?:arbeits)?speicher|"
    r"(?:system|server|dienst|verbindung)\b[\w ]{0,20}gest[oö]rt|keine (?:antwort|r[uü]ckmeldung) (?:vom|von|erhalten)|"
    r"(?:antwortet|reagiert) (?:\w+ ){0,2}nicht|zu viele anfragen"
    r"|(?:ist|sind|trat|traten|gab|gibt|kam|habe|haben|hat)\b(?![\w ]{0,40}\bkeine?n?\b)[\w ]{0,40}?(?:\w*fehler|"
    r"\w*problem\w*|\w*st[oö]rung\w*|schwierigkeiten)\b(?= ?(?:auf|aufgetreten|beim|bei|"
    r"mit (?:der|dem|unser)|gekommen|festgestellt|$|[.!,]))(?!.{0,20}(?:im vertrag|im formular|"
    r"in der abrechnung))"
    r"|(?:kann|konnte|k[oö]nnen|konnten)\b[\w ]{0,50}?(?:nicht|keine)\b[\w ]{0,30}?(?:zugreifen|"
    r"erreichen|verbinden|verarbeite[nt]|bearbeite[nt]|abrufen|laden|herstellen|abgerufen|geladen|hergestellt|"
    r"abschlie(?:ß|ss)en|ausf[uü]hren|ausgef[uü]hrt|beantworte[nt]|durchf[uü]hren|erreicht|"
    r"abgeschlossen)\b"
    r"|(?:verbindung|anfrage|abfrage|suche|datenbank|server|dienst|werkzeug|system|tool)\b[\w ]{0,40}?(?:fehlges"
    r"chlagen|abgelehnt|nicht (?:erreichbar|verf[uü]gbar)|[uü]berlastet|unterbrochen|antwortet nicht|"
    r"reagiert nicht|abgebrochen|gescheitert|ausgefallen|hat nicht (?:geantwortet|reagiert))"
    r"|(?:zu lange|l[aä]nger als \w+) (?:gedauert|gebraucht)|dauert (?:zu lange|l[aä]nger als)|"
    r"(?:zeitlimit|maximale wartezeit|anfragelimit)\b[\w ]{0,30}(?:[uü]berschritten|abgelaufen|erreicht)"
    r"|schief ?(?:gelaufen|gegangen)"
    # French
    r"|(?:renvoy|retourn)[eé] une erreur|m[eé]moire insuffisante|pas assez de m[eé]moire|connexion (?:perdue|interrompue)|"
    r"quota (?:d[eé]pass|[eé]puis)[eé]|limite (?:d['’]utilisation )?(?:est )?(?:atteinte|d[eé]pass[eé]e)|"
    r"(?:demande|requ[eê]te) (?:n['’]a|a) (?:pas )?(?:pu )?(?:[eê]tre|[eé]t[eé]) (?:trait|interrompu|annul)\w*"
    r"|(?:n['’]arriv(?:e|ons)|ne parvien[st]|ne parvenons|n['’]ai|n['’]avons|ne peu[xt]|"
    r"ne pouvons|n['’]a)\b(?: pas| pu| r[eé]ussi)*(?: [aà])?(?: me| nous| se)? (?:acc[eé]d|"
    r"connect|trait|charg|r[eé]cup[eé]r|joindre|contact|obten|ex[eé]cut|termin|g[eé]n[eé]r|"
    r"effectu|abouti)\w*"
    r"(?=.{0,80}(?:base|serveur|service|syst[eè]me|demande|requ[eê]te|moment|instant|erreur|"
    r"probl[eè]me|technique|r[eé]ponse|outil|connexion)|ir\b)"
    r"|(?:une erreur|un probl[eè]me|un incident|une panne|un souci|des probl[eè]mes|des difficult[eé]s)(?: \w+){"
    r"0,2} (?:s['’]est|s['’]|est|a [eé]t[eé]|emp[eê]ch|nous|m['’])"
    r"|(?:rencontr(?:e|ons|[eé])|ai|avons|[eé]prouv\w+) (?:actuellement )?(?:une erreur|"
    r"un probl[eè]me|des (?:probl[eè]mes|difficult[eé]s|soucis)|un souci)\b"
    r"|(?:service|serveur|syst[eè]me(?! d)|outil|requ[eê]te|recherche|connexion|base de donn[eé]es|"
    r"demande)(?: [\w]+){0,3}? (?:est (?:\w+ )?(?:indisponible|surcharg[eé]|hors service|"
    r"en panne|inaccessible|injoignable|en maintenance)|n['’]est pas (?:disponible|accessible)|"
    r"ne r[eé]pond(?:ent)? p(?:as|lus)|n['’]a pas (?:r[eé]pondu|abouti|pu)|a [eé]chou[eé]|"
    r"a expir[eé])"
    r"|d[eé]lai (?:d['’]attente|imparti|de r[eé]ponse|maxim\w+)?[^.]{0,40}(?:d[eé]pass|expir|[eé]coul)|"
    r"(?:a mis|met|prend|a pris|pris) (?:beaucoup )?(?:trop de|plus de) temps|trop de temps|"
    r"impossible (?:de|d['’])(?: ?(?:me |se |vous |nous |y )?)(?:acc[eé]d|[eé]tabl|obten|connect|trait|charg|"
    r"r[eé]cup[eé]r|joindre|contact|r[eé]pond|g[eé]n[eé]r|ex[eé]cut|termin|consult|lire|ouvrir)\w*"
    r"|s['’]est mal pass"
    # Japanese
    r"|(?:予期しない|不明な|内部|通信|接続|システム|ネットワーク|サーバー?|データベース)の?エラー(?:です|。|$)|メモリが?不足|応答がありません"
    r"|(?:エラー|問題|障害|不具合|例外)が(?:発生|起き|起こ|生じ)|(?:接続|アクセス|取得|処理|検索|応答|実行|読み込み|生成|回答|完了|通信)(?:を|"
    r"に|が|する(?:こと)?が)?(?:でき(?:ません|ない|なかった)|失敗|(?:行|おこな)えません)"
    r"|(?:サーバー?|サービス|システム|データベース|ツール)(?:は|が|に|から|の|を)[^。]{0,20}?(?:利用できません|ご?利用(?:いただけ|"
    r"になれ)ません|使用できません|応答(?:が|し)|停止|ダウン|混(?:雑|み合)|メンテナンス|つながり|繋がり)|時間(?:切れ|がかかりすぎ)|うまくいきません|"
    r"メンテナンス(?:中|のため)|(?:回答|応答|結果|データ|情報)(?:を|が)[^。]{0,16}(?:できませんでした|できません|得られません)|"
    r"(?:上限|制限)(?:を超え|に達し)|タイムアウト(?:しま|にな|が)",
    re.IGNORECASE,
)
# A sentence that adds nothing: regret, another try, whom to ask, what was promised, what was about to be done.
_FILLER = lazy(
    r"\btr(?:y|ies|ying)\b.{0,30}\bagain|\bretry|another (?:try|go|shot|attempt)|resend|"
    r"re-?submit|check back|come back|\blater\b|\bcontact|reach out|\bsupport\b|"
    r"help ?desk|administrator|apolog|\bsorry\b|inconvenience|patience|bear with|\bthank|"
    r"notified|looking into|look into|working (?:on|to)|"
    r"\bengineers?\b|\b(?:reference|request|error|correlation|trace|incident|session|ticket)[ -]?(?:id|"
    r"code|number|#)|refresh|reload|rephras|reword|"
    r"\bwait\b|hold on|\bask\b.{0,20}again|try (?:again|tomorrow)|tomorrow|upgrade|your plan|"
    r"nothing to show|let me know|would you like|if (?:the|this) (?:problem|issue|error)|"
    r"persist|check your|give (?:it|me|us)|a (?:moment|few)|"
    r"(?:can(?:no|['’])t|could(?: not|n['’]t)|unable to|not able to|without)\b.{0,40}\b(?:answer|"
    r"help|provide|give|tell|assist|look|confirm|complete|continue|respond|retrieve|show|"
    r"say)|"
    r"^(?:hi|hello|let me|one moment|checking|searching|looking|i(?:['’]ll| will) (?:look|"
    r"check|search|try)|i understand|great question|thanks|ok(?:ay)?\b|hm+)|"
    r"we(?:['’]re| are) (?:on it|aware|back)|back (?:soon|shortly)|shortly|"
    r"int[eé]nt\w+|m[aá]s tarde|disculp|lo siento|lament|perd[oó]n|bitte|sp[aä]ter|entschuldig|"
    r"leid\b|leider|r[eé]essay|plus tard|d[eé]sol|excus|veuillez|merci|gracias|danke|"
    r"申し訳|すみません|しばらく|もう一度|再度|お待ち|お試し|後ほど|ご迷惑|サポート|お問い合わせ|"
    r"ありがとう|お電話|お願い|お急ぎ|復旧|調査|(?:エラー|問い合わせ|参照)(?:コード|番号)|ご不便|恐れ入り",
    re.IGNORECASE,
)
# Figures of an answer: money, dates, clock times, shares, addresses.
_FACT = lazy(
    r"[$€£¥]\s?\d|\d ?(?:%|percent|euros?|dollars?)|\b\d{1,3}(?:,\d{3})+\b|\b\d{1,2}:\d\d\b|\b(?:19|20)\d\d\b|"
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december)\b|"
    r"\b(?:lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|domingo|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\b|"
    r"\b\d{1,2}\.?(?:er)? (?:de )?(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|januar|februar|m[aä]rz|april|mai|juni|juli|august|"
    r"september|oktober|november|dezember|janvier|f[eé]vrier|mars|avril|juin|juillet|ao[uû]t|septembre|octobre|novembre|d[eé]cembre)\b|"
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\.? \d|\d+ [A-Z]\w+ (?:St|Ave|Rd|Street|Avenue|Road|Ln|Dr|Blvd)\b",
    re.IGNORECASE,
)
_QUOTES = lazy(r"[\"“«„`]")


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


def failing_sentence(text: str) -> tuple[int, int] | None:
    """The span of the sentence that says that something failed, if the reply holds no answer beside it."""
    if len(text) > _LONGEST:
        return None
    found: tuple[int, int] | None = None
    other = 0
    for at, sentence in _sentences(text):
        # The cheap looks come first: most answers give a figure in their first sentence.
        fact = _FACT.search(sentence) is not None
        if not fact and not _QUOTES.search(sentence) and _FOREIGN.search(sentence):
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
