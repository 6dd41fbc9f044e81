"""The brains behind one interface: planner, basic, a language model, and a wrapper that injects faults."""
