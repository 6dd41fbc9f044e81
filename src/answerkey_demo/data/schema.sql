-- The tables of the business database; each is filled from tables/NAME.csv (an empty field is NULL).
CREATE TABLE properties (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, address TEXT NOT NULL, city TEXT NOT NULL, state TEXT NOT NULL, zip TEXT NOT NULL,
    kind TEXT NOT NULL, unit_count INTEGER NOT NULL, bedrooms INTEGER, square_feet INTEGER, year_built INTEGER,
    acquired_on TEXT NOT NULL, placed_in_service TEXT, purchase_price REAL NOT NULL, closing_costs REAL,
    land_basis REAL NOT NULL, building_basis REAL NOT NULL, furniture_basis REAL NOT NULL,
    total_basis REAL GENERATED ALWAYS AS (land_basis + building_basis + furniture_basis) VIRTUAL,
    market_value REAL, parcel_number TEXT, lender TEXT, loan_balance REAL, loan_rate REAL, is_main INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE depreciation (
    property_id TEXT NOT NULL REFERENCES properties(id), year INTEGER NOT NULL, building REAL NOT NULL, furniture REAL NOT NULL,
    total REAL GENERATED ALWAYS AS (building + furniture) VIRTUAL, PRIMARY KEY (property_id, year)
);
CREATE TABLE units (
    id TEXT PRIMARY KEY, property_id TEXT NOT NULL REFERENCES properties(id), label TEXT NOT NULL, bedrooms INTEGER,
    monthly_rent REAL, deposit REAL, tenant TEXT, lease_start TEXT, lease_end TEXT, status TEXT NOT NULL
);
-- kind: income, expense, or transfer (loan principal, improvements, deposits, members' capital: neither income nor expense)
CREATE TABLE transactions (
    id TEXT PRIMARY KEY, date TEXT NOT NULL, property_id TEXT REFERENCES properties(id), kind TEXT NOT NULL, category TEXT NOT NULL,
    amount REAL NOT NULL, party TEXT, description TEXT
);
CREATE INDEX transactions_by_date ON transactions (date);
-- status: open, overdue or done
CREATE TABLE obligations (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, property_id TEXT REFERENCES properties(id), authority TEXT,
    due_on TEXT NOT NULL, frequency TEXT, amount REAL, status TEXT NOT NULL, completed_on TEXT
);
CREATE TABLE documents (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, type TEXT NOT NULL, dated_on TEXT, property_id TEXT REFERENCES properties(id),
    parties TEXT, expires_on TEXT, pages INTEGER
);
