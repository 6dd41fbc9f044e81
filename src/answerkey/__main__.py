"""`python -m answerkey`."""

from answerkey.cli.main import main

main()
