"""The roles that words have in a notice of failure, each a bit: a word may have several, and a sentence has those of its words.

They are broad on purpose: wordings of a failure have no end, but the parts they are made of do.
"""

__all__ = [
    "ABLE",
    "ADVICE",
    "APOLOGY",
    "ARTICLE",
    "ASK",
    "ASKERS",
    "BAD",
    "BARE_NOT",
    "BE",
    "BECAUSE",
    "BEFORE",
    "BUT",
    "CODE",
    "COMMA",
    "CONDITION",
    "DELIVER",
    "DISTANT",
    "DOES",
    "DONE",
    "END",
    "ENOUGH",
    "EXPLAIN",
    "FACT",
    "FAIL",
    "FOR",
    "FOREIGN",
    "FUNCTION",
    "GENERAL",
    "HAPPEN",
    "HELP",
    "HOLD",
    "JOINT",
    "KEPT",
    "LIMIT",
    "MACHINE",
    "MATCHES",
    "MEET",
    "MENDED",
    "NAME",
    "NEGATION",
    "NOW",
    "NUMBER",
    "OPERATION",
    "OTHERS",
    "OWNER",
    "POLICY",
    "POLITE",
    "PRONOUN",
    "QUOTE",
    "RESULT",
    "RETRY",
    "SELF",
    "SLOW",
    "SOFT",
    "SPENT",
    "STATUS",
    "TAKE",
    "THING",
    "TO",
    "TRIED",
    "TROUBLE",
    "UNIT",
    "USER",
    "VERBAL",
    "YOU",
]

# The bot or its makers speak of themselves.
SELF = 1 << 0
# "your question", "your request".
USER = 1 << 1
# Not, no, nothing, never, without.
NEGATION = 1 << 2
# Can, could, able; "cannot" and "unable" are a negation too.
ABLE = 1 << 3
# What a bot does for the asker: answer, fetch, open, confirm.
OPERATION = 1 << 4
# The same as done to something: executed, loaded, delivered.
DONE = 1 << 5
# What the asker wants: answer, result, figure, list.
RESULT = 1 << 6
# Machinery that is nobody's but the bot's: database, server, API, retriever.
MACHINE = 1 << 7
# What is machinery only beside such words: system, request, file, session, run.
THING = 1 << 8
# Verbs and states that hardly mean anything but failing: crashed, unreachable, timed.
FAIL = 1 << 9
# Verbs and states that also mean other things: down, lost, closed, missing, exceeded.
BAD = 1 << 10
# Error, exception, outage, glitch.
TROUBLE = 1 << 11
# Sorry, unfortunately, oops.
APOLOGY = 1 << 12
# Again, later, retry, wait.
RETRY = 1 << 13
# Support, administrator, ops, ticket.
HELP = 1 << 14
# Now, currently, temporarily.
NOW = 1 << 15
# What machines write: names_with_underscores, CamelCaseErrors, statuses, paths, codes.
CODE = 1 << 16
# Figures of an answer: money, shares, years, months, large numbers.
FACT = 1 << 17
# Means, usually, happens, because of what in general.
EXPLAIN = 1 << 18
# If, when, unless; must, should.
CONDITION = 1 << 19
# Imperatives that tell the asker how to mend something of theirs.
ADVICE = 1 << 20
# Somebody or something of the world that fails without the bot: tenant, furnace, payment.
OTHERS = 1 << 21
# Fixed, resolved, restored, replaced; yesterday, ago: what is over.
MENDED = 1 << 22
# A word in capitals within a sentence, likely a name.
NAME = 1 << 23
# A word that begins or ends a quotation or code.
QUOTE = 1 << 24
# The last word of a sentence.
END = 1 << 25
# Words without a content of their own.
FUNCTION = 1 << 26
# To come back, to show: "never came back", "nothing to show".
DELIVER = 1 << 27
# A word before a comma, colon or bracket, or a dash: the clause may end here.
COMMA = 1 << 28
# But, because, so: a clause begins here.
JOINT = 1 << 29
# What an error does: occurred, happened, prevented.
HAPPEN = 1 << 30
# Help, do, find, provide: what a bot may decline or not find without any failure.
SOFT = 1 << 31
# Small numbers, which notices have too: "30 s", "3 attempts".
NUMBER = 1 << 32
# It, they, which: what was spoken of before.
PRONOUN = 1 << 33
# Not as said of a verb; "no" is said of a thing.
VERBAL = 1 << 34
# Contain, list, mention: a database that does not contain something has not failed.
HOLD = 1 << 35
# Fail, crash in the present tense: what happens in general, unless somebody says it of now.
GENERAL = 1 << 36
# "To fix it, …": a sentence that begins so gives advice.
TO = 1 << 37
# Thank, appreciate, happy, understand: what a polite bot says besides.
POLITE = 1 << 38
# Is, was: "the problem was the thermostat" is an answer.
BE = 1 << 39
# But, however: an answer may follow a notice.
BUT = 1 << 40
# Hit, ran, got, encountered: how somebody meets with trouble.
MEET = 1 << 41
# Limit, quota, steps, demand: what runs out.
LIMIT = 1 << 42
# Reached, exceeded, used: how it does.
SPENT = 1 << 43
# 4xx and 5xx, which may be a status.
STATUS = 1 << 44
# Asked, know, wondering: the question said again.
ASK = 1 << 45
# Not, where the verb comes after it at a distance: "nicht", "pas".
DISTANT = 1 << 46
# "The bank's server" is the bank's.
OWNER = 1 << 47
# Common words of Spanish, German and French.
FOREIGN = 1 << 48
# "Not" by itself: it denies the verb only after "is", "did" and their like.
BARE_NOT = 1 << 49
# "For you": what the asker gets, or does not.
FOR = 1 << 50
YOU = 1 << 51
# Took, taking: how a request is slow.
TAKE = 1 << 52
# Long, longer, forever.
SLOW = 1 << 53
# The, a: "the failed jobs" are a matter, "it failed" is a failure.
ARTICLE = 1 << 54
# Protects, keeps, waits: what something does in general.
DOES = 1 << 55
# Policy, privacy, only: why a bot declines.
POLICY = 1 << 56
# Script, laptop, website: the asker's own after "your".
ASKERS = 1 << 57
# Seconds, attempts, tokens: a number of these is no figure of an answer.
UNIT = 1 << 58
# Results, matches, records: that there are none is an answer.
MATCHES = 1 << 59
# Before, until: what comes after it did not happen.
BEFORE = 1 << 60
# Enough, sufficient: "not enough memory".
ENOUGH = 1 << 61
# Claims, payment, booking: what systems keep records of; "the claims system" is machinery.
KEPT = 1 << 62
# Because, since: why something is so.
BECAUSE = 1 << 63
# Tried, wanted, started: what the bot set out to do.
TRIED = 1 << 64
