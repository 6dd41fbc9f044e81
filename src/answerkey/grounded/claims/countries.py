"""Codes of countries and the names that stand for them."""

__all__ = ["COUNTRIES"]

_COUNTRIES_TEXT = """
AR ARG Argentina|AT AUT Austria|AU AUS Australia|BE BEL Belgium|BG BGR Bulgaria|BR BRA Brazil|CA CAN Canada|CH CHE Switzerland|
CL CHL Chile|CN CHN China|CO COL Colombia|CZ CZE Czechia|DE DEU Germany|DK DNK Denmark|EE EST Estonia|EG EGY Egypt|ES ESP Spain|
FI FIN Finland|FR FRA France|GB GBR United Kingdom|GR GRC Greece|HR HRV Croatia|HU HUN Hungary|IE IRL Ireland|IL ISR Israel|
IN IND India|IT ITA Italy|JP JPN Japan|KE KEN Kenya|KR KOR South Korea|LT LTU Lithuania|LU LUX Luxembourg|LV LVA Latvia|
MA MAR Morocco|MX MEX Mexico|MY MYS Malaysia|NG NGA Nigeria|NL NLD Netherlands|NO NOR Norway|NZ NZL New Zealand|PE PER Peru|
PH PHL Philippines|PL POL Poland|PT PRT Portugal|RO ROU Romania|RS SRB Serbia|SE SWE Sweden|SG SGP Singapore|SI SVN Slovenia|
SK SVK Slovakia|TH THA Thailand|TR TUR Turkey|TW TWN Taiwan|UA UKR Ukraine|UK UK United Kingdom|US USA United States|
VN VNM Vietnam|ZA ZAF South Africa
"""


def _read() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for entry in _COUNTRIES_TEXT.split("|"):
        short, long, *name = entry.split()
        key = " ".join(name).lower()
        found[key] = (*found.get(key, ()), short, long)
    return found


# A country's name, small → its codes.
COUNTRIES = _read()
