"""Where what a reply states stands in its evidence."""
