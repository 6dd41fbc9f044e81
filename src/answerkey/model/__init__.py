"""The nouns: what a question, a reply, a trial, a score and a run are."""
