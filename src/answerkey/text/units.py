"""Units and their spellings: one canonical name for "m", "metres" and "meters", and what each measures."""

# The first of each line stands for all of them. Single letters that are more often something else are left out.
_LINES = """
metre metres meter meters m metro metros mètre mètres metri
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
tonne tonnes ton tons tonnen tonelada toneladas tonnellata tonnellate t
kilotonne kilotonnes kt
pound lb lbs
ounce ounces oz
litre litres liter liters l litro litros litri
cubicmetre m³ cbm
millilitre millilitres milliliter milliliters ml
gallon gallons gal
second seconds sec secs sekunde sekunden seconde secondes segundo segundos secondi
minute minutes min mins minuten minuto minutos minuti
hour hours hr hrs h stunde stunden std heure heures hora horas ore ora
day days tag tage tagen jour jours día días dia dias giorno giorni
week weeks wk wks woche wochen semaine semaines semana semanas settimana settimane
fortnight fortnights
month months mo mos monat monate monaten mois mes meses mese mesi mês
quarter quarters quartal quartale trimestre
year years yr yrs annum jahr jahre jahren an ans année années año años anno anni ano anos
percent percentage pct per-cent % ٪ prozent pourcent
dollar dollars usd buck bucks dólares
euro euros eur
sterling gbp quid
pounds
pence p penny
cent cents
degree degrees deg °
celsius centigrade °c
fahrenheit farenheit °f
mph miles-per-hour
kmh km/h kph
watt watts w
kilowatt kilowatts kw
megawatt megawatts mw
kilowatthour kwh
megawatthour mwh
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
# What a unit measures and how many base units it is; a unit that is not named here measures itself.
DIMENSIONS: dict[str, tuple[str, float]] = {
    unit: (dimension, factor)
    for dimension, units in {
        "time": {
            "second": 1.0,
            "minute": 60.0,
            "hour": 3600.0,
            "day": 86400.0,
            "week": 604800.0,
            "fortnight": 1209600.0,
        },
        "months": {"month": 1.0, "quarter": 3.0, "year": 12.0},
        "length": {"millimetre": 0.001, "centimetre": 0.01, "metre": 1.0, "kilometre": 1000.0},
        "feet": {"inch": 1 / 12, "foot": 1.0, "yard": 3.0},
        "mass": {"milligram": 0.001, "gram": 1.0, "kilogram": 1000.0, "tonne": 1e6, "kilotonne": 1e9},
        "volume": {"millilitre": 0.001, "litre": 1.0, "cubicmetre": 1000.0},
        "power": {"watt": 1.0, "kilowatt": 1e3, "megawatt": 1e6},
        "energy": {"kilowatthour": 1.0, "megawatthour": 1e3},
        "data": {"byte": 1.0, "kilobyte": 1e3, "megabyte": 1e6, "gigabyte": 1e9, "terabyte": 1e12},
        "%": {"percent": 1.0},
        "°": {"degree": 1.0, "celsius": 1.0},
        "cent": {"cent": 1.0, "pence": 1.0},
        "$": {"dollar": 1.0},
        "€": {"euro": 1.0},
        "£": {"sterling": 1.0},
    }.items()
    for unit, factor in units.items()
}
