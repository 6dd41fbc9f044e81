"""Words that are written with a capital for their place or style and name nothing: sentence openers, labels, forms of address."""

__all__ = ["LEGAL_FORMS", "ORDINARY", "STATES", "TITLES"]

# How sentences, headings and labels begin, and the nouns that reports and chatbots capitalise.
_ORDINARY = """
a about above absolutely according accordingly account accounts accounting action actions active activity actual add
added additional additionally address addresses adjusted after again agreement agreements ah all almost alright also
alternatively although always am amount amounts an analysis and annual annually another answer answers any anything
apologies appears appendix applicable application applications approved approx approximately are area article articles
as ask asset assets assistance assuming at attached attachment availability available average avg awaiting balance
balances bank base based basic basis bathrooms be because bedrooms been before being below benefit benefits besides
best between beyond bill billing bills board bonus both bottom breakdown budget building buildings business but buyer
by call can cannot cash category cause ceo certainly cfo chair chairman change changes chapter charge charges check
chief city claim class clause clear click client clients close closed closing code combined comment comments company
compared complete completed conclusion condition conditions confirmed congratulations consequently consider contact
contacts contract contracts contrary conversely correct cost costs count counts country coverage created credit
currency current currently customer customers daily data database date dates day days deadline deal dear debit
decision deduction deductions delivered delivery department deposit deposits depreciation description despite detail
details did difference director disclaimer discount discounts distribution division do document documents does done
down draft driver due duration during each earlier earnings edit effective eight either eleven else email employee
employees end entire equipment error especially essentially estimate estimated even eventually every everything
exactly example excellent except exhibit expected expense expenses expiration expires explanation external fair fee
fees few fifth file filed files final finally finance financial findings fine first fiscal five fixed following for
form forms fortunately four fourth free from full fund funds further furthermore future general generally given glad
good goodbye got government grand great gross group guarantee had half happy has have he head heading hello help hence
her here hers hey hi high higher highest highlights him his history home hope hours house how however human i id if
image immediately important in inactive incident included includes including income increase indeed individual info
information initial initially input inside instead insurance insured interest internal interestingly into inventory
invoice invoices is issue issued issues it item items its itself january job join just keep kept key kind land
landlord large largest last lastly late later latest lease leases least left legal less let level liability license
likely line list listed listing loan loans local location locations log long looking looks low lower lowest made mail
main maintenance make management manager many margin market material math maximum may maybe me mean meanwhile means
median medical meeting member members message met method middle minimum minor minutes model monthly more moreover
mortgage most mostly much must my name names near nearly need needed net never nevertheless new next nine no nobody
none nonetheless nope normally not note noted notes nothing notice notification now number numbers object obligation
obligations obviously of off office officer offer oh ok okay old on once one ongoing online only open opening
operating operations option optional options or order ordered orders original other others otherwise our out output
outstanding over overall overdue overview own owned owner owners ownership package page paid part partially partner
partners parts past patient patients pay payable payee payment payments pending per percent percentage perfect perhaps
period person phone photo place plan planned plans please plus point points policies policy pool position possible
post potential premium premiums prepared present president previous previously price prices pricing primary principal
prior private probably problem procedure proceeds process product products profit program project projects properties
property proposed provided provider purchase purchased purchases purpose quantity quarter quarterly question questions
quick quite quote rate rates rather rating re ready real reason receipt receipts received recent recently
recommendation recommended record records reference refund refunds regarding region regular related release relevant
remaining remember reminder rent rental rentals repair repairs reply report reported reports request requested
required requirement requirements reserve residential resolved response responsible rest result results return
returned returns revenue revenues review reviewed right risk role room rooms row rows rule rules salary sale sales
same sample saturday savings schedule scheduled score search second secondary secretary section secured security see
seller send sent separate separately service services set seven several shall share shares she shift shipped shipping
short should show shown shows signed significant similar similarly simple simply since site six size small so some
someone something sometimes sorry source sources speaking special specific specifically spending staff standard start
started state stated statement statements status still stock storage store street student students sub subject
subscription subtotal such sum summary supplier suppliers support sure surely system table take taken tax taxable
taxes team technically ten tenant tenants term terms thank thanks that the their them then there therefore these they
thing things third this those though three through thus ticket tickets tier time title to today together tomorrow
tonight too top total totals traded transaction transactions transfer transfers treasurer true trust try twelve two
type types ultimately under understood unfortunately unit units unless unlike unpaid until up update updated updates
upon us usage use used user users usually utilities utility vacancy vacant valid value values variable vendor vendors
versus version very via vice view visit vs wage wages wait want warning warranty was way we wednesday week weekly
weeks welcome well were what whatever when whenever where whereas whether which while who whole whose why will with
within without work working would year yearly years yes yesterday yet you your yours zero zip clerk council committee
commission administration agency administrator counsel attorney accountant advisor assistant agent representative hall
center centre library school court floor suite apartment apt north south east west fahrenheit celsius kelvin
"""
ORDINARY = frozenset(_ORDINARY.split())

# They belong to a name but need not stand with it.
_LEGAL_FORMS = """
llc inc ltd co corp corporation company limited gmbh ag plc lp llp sa bv the
"""
LEGAL_FORMS = frozenset(_LEGAL_FORMS.split())

# Forms of address before a name.
_TITLES = """
mr mrs ms miss dr prof professor sir madam st jr sr councillor councilman councilwoman councilmember cllr mayor judge
senator captain officer coach nurse chef
"""
TITLES = frozenset(_TITLES.split())

_STATES = """
AL Alabama|AK Alaska|AZ Arizona|AR Arkansas|CA California|CO Colorado|CT Connecticut|
DE Delaware|FL Florida|GA Georgia|HI Hawaii|ID Idaho|IL Illinois|IN Indiana|
IA Iowa|KS Kansas|KY Kentucky|LA Louisiana|ME Maine|MD Maryland|MA Massachusetts|
MI Michigan|MN Minnesota|MS Mississippi|MO Missouri|MT Montana|NE Nebraska|NV Nevada|
NH New Hampshire|NJ New Jersey|NM New Mexico|NY New York|NC North Carolina|ND North Dakota|OH Ohio|
OK Oklahoma|OR Oregon|PA Pennsylvania|RI Rhode Island|SC South Carolina|SD South Dakota|TN Tennessee|
TX Texas|UT Utah|VT Vermont|VA Virginia|WA Washington|WV West Virginia|WI Wisconsin|
WY Wyoming|DC District of Columbia
"""
# Postal code → the state's name, lower case.
STATES = {
    code: name.lower() for code, _, name in (entry.strip().partition(" ") for entry in _STATES.split("|"))
}
