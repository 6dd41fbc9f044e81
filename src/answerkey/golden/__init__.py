"""The golden set itself under test: `lint` checks how it is written, `audit` what it takes to pass it."""
