"""Whether a keyword is said in a reply."""
