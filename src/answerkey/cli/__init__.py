"""The command line: parse, call `runs`, hand the result to `report`."""

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_default_excepthook = sys.excepthook


def _report_interrupt(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """Print one line for Ctrl-C while a command's modules are still being imported."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("answerkey: interrupted\n")
    else:
        _default_excepthook(kind, error, trace)


sys.excepthook = _report_interrupt
# Imports and streams of records create few cycles; collecting rarely saves a tenth of the time.
gc.set_threshold(100_000, 20, 100)
