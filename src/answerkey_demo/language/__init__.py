"""How a question is read: its words, its periods of time, and everything in it that the records or the lexicon name."""
