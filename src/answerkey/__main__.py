"""`python -m answerkey`."""

import os
import sys

# `python -m` searches the current folder first, where a file such as click.py would replace the installed package. Python
# chatbots and scorers are still found there.
if sys.path[:1] in ([""], [os.getcwd()]) and not sys.flags.safe_path:  # noqa: PTH109  # pathlib may be shadowed too
    del sys.path[0]

from answerkey.cli.main import main

main()
