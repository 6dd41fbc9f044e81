"""Whether a reply is an error instead of an answer."""
