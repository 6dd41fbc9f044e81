"""Where what a reply states stands in its evidence: links for the eye, two plain descriptions, and the door for a model."""
