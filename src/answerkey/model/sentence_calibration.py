"""SentenceCalibration: how well a judge or model tells supported sentences from others, measured on labelled ones."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from answerkey.errors import ConfigError
from answerkey.stats.intervals import Interval, wilson_interval

NOT_CALIBRATED = "not calibrated: see answerkey judge calibrate --sentences"


class SentenceCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """What `answerkey judge calibrate --sentences` measures and writes."""

    # The judge's or entailment model's name.
    model: str
    # A sentence counts as supported from this probability on; of a judge, who says yes or no, 0.5.
    threshold: float
    # Labelled sentences that claim something and that the model gave a verdict on; and those it gave none on.
    sentences: int
    unjudged: int
    # Of the supported sentences, the share that it calls supported; of the others, the share that it calls unsupported.
    supported_found: float
    supported_interval: Interval | None
    unsupported_found: float
    unsupported_interval: Interval | None

    @property
    def in_words(self) -> str:
        """One line for wherever a groundedness stands."""
        return (
            f"on {self.sentences} labelled sentences it finds {self.supported_found:.0%} of the supported ones"
            f"{_within(self.supported_interval)} and {self.unsupported_found:.0%} of the others"
            f"{_within(self.unsupported_interval)}"
        )


def _within(interval: Interval | None) -> str:
    return "" if interval is None else f" [{interval.low:.0%}, {interval.high:.0%}]"


def calibrate_sentences(
    model: str, verdicts: Sequence[tuple[bool, float | None]], *, threshold: float | None = None
) -> SentenceCalibration:
    """From (labelled as supported, the model's probability); without a threshold, the one that tells best is taken.

    A threshold that was chosen on these sentences flatters the figures a little: calibrate on sentences of your own.
    """
    known = [(label, value) for label, value in verdicts if value is not None]
    yes, no = ([value for label, value in known if label is kind] for kind in (True, False))
    if not yes or not no:
        raise ConfigError(
            "calibration needs labelled sentences of both kinds, supported and not, with a verdict"
        )
    cuts = sorted({0.5, *(value for _, value in known)}) if threshold is None else [threshold]
    best = max(cuts, key=lambda cut: _share(yes, cut) - _share(no, cut))
    held, flagged = sum(value >= best for value in yes), sum(value < best for value in no)
    return SentenceCalibration(
        model=model,
        threshold=best,
        sentences=len(known),
        unjudged=len(verdicts) - len(known),
        supported_found=held / len(yes),
        supported_interval=wilson_interval(held, len(yes)),
        unsupported_found=flagged / len(no),
        unsupported_interval=wilson_interval(flagged, len(no)),
    )


def _share(values: Sequence[float], cut: float) -> float:
    return sum(value >= cut for value in values) / len(values)


def read_calibration(path: Path, model: str) -> SentenceCalibration:
    """A calibration from its file; refuses one of another model."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=SentenceCalibration)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{path}: no calibration: {error}; make one with judge calibrate --sentences"
        ) from None
    if found.model != model:
        raise ConfigError(f"{path}: calibrates {found.model!r}, not {model!r}; calibrate anew")
    return found
