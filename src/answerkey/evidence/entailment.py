"""Entailment models: a cross-encoder in ONNX form, and the sentences of a reply checked against its evidence.

A model is a folder with `model.onnx`, `tokenizer.json` and `config.json` (whose `id2label` names the labels), or the name
of a model on the Hugging Face hub. Needs the extra `entailment`.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from answerkey.errors import ConfigError, MissingExtraError
from answerkey.evidence.records import (
    EarlierTurns,
    Evidence,
    Words,
    content_words,
    gather_evidence,
    sentence_edges,
)
from answerkey.model.question import Question
from answerkey.model.reply import Reply

_BATCH_SIZE = 16
_MAX_TOKENS = 512  # of a pair; the premise is truncated first
# Label names that mean entailment, in lower case. A model with a single label needs no name.
_ENTAILMENT_LABELS = ("entailment", "entails", "supported", "consistent", "label_entailment")
_MODEL_FILES = ("model.onnx", "onnx/model.onnx")

_MIN_CLAIM_WORDS = 2  # a sentence with fewer content words claims nothing: "Sure!", "Warm regards"
_MAX_PREMISE_LENGTH = 800  # passages are cut into premises of this many characters
_PREMISES_PER_SENTENCE = 3  # the premises with most words in common are tried


class CrossEncoder:
    """A loaded entailment model."""

    def __init__(self, session: Any, tokenizer: Any, label: int | None, name: str) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._label = label  # index of the entailment logit; None for a model with a single logit
        self._inputs = {one.name for one in session.get_inputs()}
        self.name = name

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The probability that the second text of each pair follows from the first, in order."""
        probabilities: list[float] = []
        for start in range(0, len(pairs), _BATCH_SIZE):
            probabilities += self._batch(pairs[start : start + _BATCH_SIZE])
        return probabilities

    def _batch(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        plain = [tuple(part.encode("utf-8", "replace").decode() for part in pair) for pair in pairs]
        encoded = self._tokenizer.encode_batch(plain)
        arrays = {
            "input_ids": np.array([one.ids for one in encoded], dtype=np.int64),
            "attention_mask": np.array([one.attention_mask for one in encoded], dtype=np.int64),
            "token_type_ids": np.array([one.type_ids for one in encoded], dtype=np.int64),
        }
        inputs = {name: value for name, value in arrays.items() if name in self._inputs}
        logits = np.asarray(self._session.run(None, inputs)[0], dtype=np.float64).reshape(len(pairs), -1)
        if self._label is None:
            return [float(value) for value in 1.0 / (1.0 + np.exp(-logits[:, 0]))]
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return [float(value) for value in raised[:, self._label] / raised.sum(axis=1)]


def load_cross_encoder(name: str, folder: Path = Path()) -> CrossEncoder:
    """Load the model from a folder (relative to `folder`), or from the hub."""
    try:
        import onnxruntime
        import tokenizers
    except ImportError:
        raise MissingExtraError("an entailment model", "entailment") from None
    path = folder / name
    if not path.is_dir():
        path = _download(name, path)
    weights = next((path / part for part in _MODEL_FILES if (path / part).is_file()), None)
    for part in ("tokenizer.json", "config.json"):
        if not (path / part).is_file():
            raise ConfigError(
                f"{path}: {part} is missing; the folder needs model.onnx, tokenizer.json and config.json"
            )
    if weights is None:
        raise ConfigError(f"{path}: model.onnx is missing; export the model, or use one that has it")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # replies are scored in several processes
    try:
        session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    except Exception as error:  # noqa: BLE001  # both libraries raise bare exceptions for a broken file
        raise ConfigError(f"{path}: cannot be loaded: {' '.join(str(error).split())[:200]}") from None
    tokenizer.enable_truncation(_MAX_TOKENS, strategy="only_first")
    tokenizer.enable_padding()
    return CrossEncoder(session, tokenizer, _entailment_label(path / "config.json"), name)


def _download(name: str, path: Path) -> Path:
    if name.count("/") != 1 or name.startswith((".", "/")):
        raise ConfigError(f"{path}: no such folder; [grounded] model is a folder, or OWNER/NAME on the hub")
    from huggingface_hub import snapshot_download  # comes with tokenizers

    try:
        return Path(snapshot_download(name, allow_patterns=["tokenizer.json", "config.json", *_MODEL_FILES]))
    except Exception as error:  # noqa: BLE001  # no network, no such model, no permission: each its own exception
        reason = str(error).splitlines()[0][:200]
        raise ConfigError(f"{name}: not a folder, and downloading it from the hub failed: {reason}") from None


def _entailment_label(path: Path) -> int | None:
    """The index of the entailment label; None for a model with one label."""
    try:
        labels = msgspec.json.decode(path.read_bytes()).get("id2label", {})
        numbers = {str(label).lower(): int(number) for number, label in labels.items()}
    except (msgspec.DecodeError, AttributeError, ValueError):
        raise ConfigError(f"{path}: not the configuration of a model; it needs id2label") from None
    for label in _ENTAILMENT_LABELS:
        if label in numbers:
            return numbers[label]
    if len(numbers) > 1:
        raise ConfigError(
            f"{path}: none of the labels {', '.join(numbers)} is called entailment; rename it in id2label"
        )
    return None


class SentenceSupport(NamedTuple):
    """How well the evidence supports a sentence."""

    sentence: str
    probability: float
    note: str  # "87% by tool_calls[0].result"


def claimed_sentences(text: str) -> list[str]:
    """The sentences that can claim something: not questions, not headings of a word or two."""
    sentences = [text[start:end].strip() for start, end in pairwise(sentence_edges(text))]
    return [
        one
        for one in sentences
        if one[-1:] not in "?？:" and len(content_words(Words(one).keys)) >= _MIN_CLAIM_WORDS
    ]


def verify_sentences(
    model: CrossEncoder,
    question: Question,
    reply: Reply,
    earlier: EarlierTurns = (),
    *,
    sentences: Sequence[str],
) -> list[SentenceSupport]:
    """Check each sentence against the premises that share most words with it; the best premise counts."""
    premises = _premises(gather_evidence(question, reply, earlier))
    premise_words = [content_words(Words(text).keys) for _, text in premises]
    pairs: list[tuple[int, int]] = []  # (sentence, premise)
    for number, sentence in enumerate(sentences):
        words = content_words(Words(sentence).keys)
        nearest = sorted(range(len(premises)), key=lambda index: -len(words & premise_words[index]))
        pairs += [(number, index) for index in nearest[:_PREMISES_PER_SENTENCE]]
    probabilities = model.probabilities([(premises[index][1], sentences[number]) for number, index in pairs])
    checked = []
    for number, tried in groupby(zip(pairs, probabilities, strict=True), key=lambda one: one[0][0]):
        (_, index), best = max(tried, key=lambda one: one[1])
        checked.append(SentenceSupport(sentences[number], best, f"{best:.0%} by {premises[index][0]}"))
    return checked


def _premises(evidence: Evidence) -> list[tuple[str, str]]:
    """(address, text): passages in pieces, and records as "name: value" lines; neighbouring short ones are joined."""
    premises: list[tuple[str, str]] = []
    for record, following in pairwise(evidence.records):
        values = evidence.values[record.first_value : following.first_value]
        if record.path is None:
            text = "\n".join(value.text for value in values)
        else:
            text = "\n".join(f"{value.key}: {value.text}" for value in values if value.is_cell)
        if (
            premises
            and premises[-1][0] == record.root
            and len(premises[-1][1]) + len(text) < _MAX_PREMISE_LENGTH
        ):
            premises[-1] = (record.root, f"{premises[-1][1]}\n{text}")
        else:
            pieces = range(0, len(text), _MAX_PREMISE_LENGTH)
            premises += [(record.root, text[start : start + _MAX_PREMISE_LENGTH]) for start in pieces]
    return premises
