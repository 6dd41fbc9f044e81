"""Links from a reply into its evidence, and sentences checked by an entailment model."""
