"""The command line: one file per command, each assembling parts that live elsewhere."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_before = sys.excepthook


def _say_interrupted(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """Ctrl-C while the modules of a command are still being loaded is one line, too."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("answerkey: interrupted\n")
    else:
        _before(kind, error, trace)


sys.excepthook = _say_interrupted
