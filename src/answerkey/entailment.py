"""The door for a real model: a cross-encoder in ONNX form that says how probably one text follows from another.

A folder with `model.onnx`, `tokenizer.json` and `config.json` (its `id2label` names the labels), or the model's name on
the hub where there is a network. Needs the extra `entailment`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from answerkey.errors import ConfigError, MissingExtraError

# Pairs that go through the model at once.
_BATCH = 16
# Tokens of a pair; the premise is cut first.
_MOST_TOKENS = 512
# How models call what counts here, in small letters; one with a single label gives a probability by itself.
_ENTAILMENT = ("entailment", "entails", "supported", "consistent", "label_entailment")
_PLACES = ("model.onnx", "onnx/model.onnx")


class CrossEncoder:
    """An entailment model, ready to be asked."""

    def __init__(self, session: Any, tokenizer: Any, label: int | None, name: str) -> None:
        self._session = session
        self._tokenizer = tokenizer
        # Which of the logits is entailment; None: there is one only.
        self._label = label
        self._inputs = {one.name for one in session.get_inputs()}
        self.name = name

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """How probably each second text follows from the first one; in batches, in the order given."""
        found: list[float] = []
        for start in range(0, len(pairs), _BATCH):
            found += self._batch(pairs[start : start + _BATCH])
        return found

    def _batch(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        plain = [tuple(part.encode("utf-8", "replace").decode() for part in pair) for pair in pairs]
        encoded = self._tokenizer.encode_batch(plain)
        arrays = {
            "input_ids": np.array([one.ids for one in encoded], dtype=np.int64),
            "attention_mask": np.array([one.attention_mask for one in encoded], dtype=np.int64),
            "token_type_ids": np.array([one.type_ids for one in encoded], dtype=np.int64),
        }
        given = {name: value for name, value in arrays.items() if name in self._inputs}
        logits = np.asarray(self._session.run(None, given)[0], dtype=np.float64).reshape(len(pairs), -1)
        if self._label is None:
            return [float(value) for value in 1.0 / (1.0 + np.exp(-logits[:, 0]))]
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return [float(value) for value in raised[:, self._label] / raised.sum(axis=1)]


def load_cross_encoder(name: str, folder: Path = Path()) -> CrossEncoder:
    """The model in a folder (relative to `folder`), or of that name on the hub; whatever is wrong is said here."""
    try:
        import onnxruntime
        import tokenizers
    except ImportError:
        raise MissingExtraError("an entailment model", "entailment") from None
    place = folder / name
    if not place.is_dir():
        place = _from_hub(name, place)
    weights = next((place / part for part in _PLACES if (place / part).is_file()), None)
    for part in ("tokenizer.json", "config.json"):
        if not (place / part).is_file():
            raise ConfigError(
                f"{place}: {part} is missing; the folder needs model.onnx, tokenizer.json and config.json"
            )
    if weights is None:
        raise ConfigError(f"{place}: model.onnx is missing; export the model, or take one that comes with it")
    options = onnxruntime.SessionOptions()
    # Replies are scored in several processes.
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(place / "tokenizer.json"))
    except Exception as error:  # noqa: BLE001  # both libraries raise bare exceptions for a broken file
        raise ConfigError(f"{place}: cannot be loaded: {' '.join(str(error).split())[:200]}") from None
    tokenizer.enable_truncation(_MOST_TOKENS, strategy="only_first")
    tokenizer.enable_padding()
    return CrossEncoder(session, tokenizer, _entailment_label(place / "config.json"), name)


def _from_hub(name: str, place: Path) -> Path:
    if name.count("/") != 1 or name.startswith((".", "/")):
        raise ConfigError(f"{place}: no such folder; [grounded] model is a folder, or OWNER/NAME on the hub")
    from huggingface_hub import snapshot_download  # comes with tokenizers

    try:
        wanted = ["tokenizer.json", "config.json", *_PLACES]
        return Path(snapshot_download(name, allow_patterns=wanted))
    except Exception as error:  # noqa: BLE001  # no network, no such model, no leave: each its own exception
        raise ConfigError(
            f"{name}: not a folder, and not to be had from the hub: {str(error).splitlines()[0][:200]}"
        ) from None


def _entailment_label(path: Path) -> int | None:
    """Which label is entailment; None for a model with one label."""
    try:
        labels = msgspec.json.decode(path.read_bytes()).get("id2label", {})
        known = {str(label).lower(): int(number) for number, label in labels.items()}
    except (msgspec.DecodeError, AttributeError, ValueError):
        raise ConfigError(f"{path}: no model's configuration; it needs id2label") from None
    found = next((known[label] for label in _ENTAILMENT if label in known), None)
    if found is None and len(known) > 1:
        raise ConfigError(f"{path}: no label of {', '.join(known)} is called entailment; name it in id2label")
    return found
