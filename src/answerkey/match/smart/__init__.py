"""`smart` matching: what a careful reader would accept, decided by fixed rules and one small fitted model."""
