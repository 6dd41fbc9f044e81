"""Units and their spellings: one canonical name for "m", "metres" and "meters"."""

__all__ = ["UNIT_SPELLINGS", "same_unit"]

# The first of each line stands for all of them. Single letters that are more often something else are left out.
_LINES = """
metre metres meter meters m
kilometre kilometres kilometer kilometers km kms
centimetre centimetres centimeter centimeters cm cms
millimetre millimetres millimeter millimeters mm
foot feet ft
inch inches in
yard yards yd yds
mile miles mi
gram grams gramme grammes g gr
kilogram kilograms kilogramme kilogrammes kg kgs kilo kilos
milligram milligrams mg
tonne tonnes ton tons
pound pounds lb lbs
ounce ounces oz
litre litres liter liters l
millilitre millilitres milliliter milliliters ml
gallon gallons gal
second seconds sec secs
minute minutes min mins
hour hours hr hrs
day days
week weeks wk wks
month months mo mos
year years yr yrs
percent percentage pct per-cent
dollar dollars usd buck bucks
euro euros eur
sterling gbp quid
cent cents
degree degrees deg
celsius centigrade
fahrenheit farenheit
mph miles-per-hour
watt watts
volt volts
amp amps ampere amperes
hertz hz
acre acres ac
hectare hectares ha
squarefoot sqft sf
byte bytes
kilobyte kilobytes kb
megabyte megabytes mb
gigabyte gigabytes gb
terabyte terabytes tb
"""
# Spelling to canonical name.
UNIT_SPELLINGS: dict[str, str] = {
    spelling: line.split()[0] for line in _LINES.strip().splitlines() for spelling in line.split()
}


def same_unit(one: str, other: str) -> bool:
    """Whether two folded words name the same unit."""
    canonical = UNIT_SPELLINGS.get(one)
    return canonical is not None and canonical == UNIT_SPELLINGS.get(other)
