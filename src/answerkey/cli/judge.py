"""`answerkey judge`: calibrate judges against people, and serve the small one that needs no key."""

from pathlib import Path

import click

__all__ = ["judge"]


@click.group()
def judge() -> None:
    """Calibrate and run model judges.

    \b
    Examples:
      answerkey judge calibrate latest --labels verdicts.jsonl
      answerkey judge serve --port 8081
    """


@judge.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8081, help="The port; 0 takes a free one.")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A .gguf file instead of the small model.",
)
@click.option("--threads", type=click.IntRange(1, 256), default=1, help="Processor threads (1).")
def serve(port: int, model: Path | None, threads: int) -> int:
    """Serve a local judge on 127.0.0.1, with llama.cpp's OpenAI-compatible API, until it is stopped.

    `--judge local` starts and stops one by itself. The small model is a weak judge: see what its canaries say.

    \b
    Examples:
      answerkey judge serve
      answerkey judge serve --model qwen2.5-7b-instruct.gguf --threads 8
    """
    import signal
    import threading

    from answerkey.judge.local import ADDRESS_PREFIX
    from answerkey.judge.local import serve as start

    server, address = start(port=port, model=model, threads=threads)
    click.echo(f"{ADDRESS_PREFIX}{address}")
    click.echo(f"use it with: answerkey run --judge local-model --judge-base-url {address}")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
    del server
    return 0
