"""What a question says: words, periods of time, and the things of the business that it names."""
