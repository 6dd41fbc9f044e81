"""Word lists that the alignment needs: abbreviations, titles that a name may lack, words that stand for others."""

from answerkey.text.units import UNIT_SPELLINGS

__all__ = ["LIGHT_WORDS", "QUALIFIERS", "equivalents"]

# Abbreviation, then what it can stand for.
_ABBREVIATIONS = """
st street saint
ave avenue av
blvd boulevard
rd road
dr drive doctor
ln lane
ct court
hwy highway
pl place
sq square
pkwy parkway
apt apartment
ste suite
bldg building
fl floor
n north
s south
e east
w west
ne northeast
nw northwest
se southeast
sw southwest
mt mount mountain
ft fort
co company county colorado
corp corporation
inc incorporated
ltd limited
dept department
univ university
assn association
intl international
govt government
mgmt management
acct account
amt amount
qty quantity
approx approximately
est established estimated
no number
vs versus
jr junior
sr senior
prof professor
gen general
col colonel
capt captain
lt lieutenant
sgt sergeant
rev reverend
pres president
gov governor
sen senator
us usa america
uk britain
jan january
feb february
mar march
apr april
jun june
jul july
aug august
sep september sept
oct october
nov november
dec december
mon monday
tue tuesday tues
wed wednesday
thu thursday thurs
fri friday
sat saturday
sun sunday
yes true correct
no false incorrect
tv television
phone telephone
photo photograph
bike bicycle
plane aeroplane airplane aircraft
fridge refrigerator
flu influenza
m million
bn billion
tn trillion
k 1000
"""
_LIGHT_WORD_LIST = """
mr mrs ms miss dr sir dame lord lady king queen prince princess saint st president senator captain
general colonel duke earl count baron pope emperor tsar professor rev jr sr city town state county
country republic kingdom island islands river lake mount mountain sea ocean company corporation inc
ltd llc group band song album film movie book novel series show game disambiguation number person
people thing things type kind name called known century years year day days old new approximately
around roughly circa c about nearly almost exactly least
"""
# Words that tell little: titles, ranks, kinds of thing. A name is recognised without them.
LIGHT_WORDS = frozenset(_LIGHT_WORD_LIST.split())

# Light in a name ("New York City"), but not in a term: "state tax" is not federal tax, "new roof" is not the old one.
QUALIFIERS = frozenset({"city", "country", "county", "new", "old", "state", "town"})

_EQUIVALENTS: dict[str, frozenset[str]] = {}
for _line in _ABBREVIATIONS.strip().splitlines():
    _short, *_long = _line.split()
    _EQUIVALENTS[_short] = _EQUIVALENTS.get(_short, frozenset()) | frozenset(_long)
    for _word in _long:
        _EQUIVALENTS[_word] = _EQUIVALENTS.get(_word, frozenset()) | {_short}
_BY_UNIT: dict[str, set[str]] = {}
for _spelling, _unit in UNIT_SPELLINGS.items():
    _BY_UNIT.setdefault(_unit, set()).add(_spelling)
for _spelling, _unit in UNIT_SPELLINGS.items():
    _EQUIVALENTS[_spelling] = _EQUIVALENTS.get(_spelling, frozenset()) | (_BY_UNIT[_unit] - {_spelling})

# In a fixed order, so that the same span is shown each time.
_ORDERED = {word: tuple(sorted(others)) for word, others in _EQUIVALENTS.items()}
equivalents = _ORDERED.get
