"""Gates: conditions on a run, or on its comparison with a baseline, that decide the exit code."""

from answerkey.gate.evaluate import check_gates, evaluate_gates
from answerkey.gate.parse import Gate, parse_gate

__all__ = ["Gate", "check_gates", "evaluate_gates", "parse_gate"]
