"""A judge's calibration, and its comparison of two runs, as lines of text."""

from collections.abc import Iterator

from answerkey.judge.bias import Lean, PairBias
from answerkey.judge.calibration import Calibration, Rate
from answerkey.judge.pairwise import Pairwise
from answerkey.stats.agreement import Confusion
from answerkey.stats.corrected_means import Corrected
from answerkey.stats.intervals import Interval
from answerkey.text.sanitise import one_line

# How agreement beyond chance is usually called (Landis and Koch); from each value on.
_WORDS = ((0.8, "almost perfect"), (0.6, "substantial"), (0.4, "moderate"), (0.2, "fair"), (0.0, "slight"))


def calibration_lines(found: Calibration, *, judge: str, run: str) -> Iterator[str]:
    """What a person reads, top down: how good the judge is, then what its pass rate is worth."""
    table = found.confusion
    yield f"{one_line(judge, 60)} against people · {one_line(run, 60)}"
    yield (
        f"{found.labelled} labelled replies ({one_line(found.source, 60)}), {found.unlabelled} only judged"
        + (f", {found.unjudged} not judged" if found.unjudged else "")
        + f"; the judge passes from {found.pass_mark:g} on"
    )
    yield ""
    yield f"{'':22}{'people: right':>15}{'people: wrong':>15}"
    yield f"{'judge passes':22}{table.true_positive:>15}{table.false_positive:>15}"
    yield f"{'judge fails':22}{table.false_negative:>15}{table.true_negative:>15}"
    yield ""
    yield f"{'agreement':22}{_rate(found.agreement)}"
    if found.kappa is None:
        yield f"{'Cohen κ':22}cannot be said: {_constant(table)} gave every reply the same verdict"
    else:
        word = next((word for least, word in _WORDS if found.kappa.value >= least), "none")
        yield f"{'Cohen κ':22}{found.kappa.value:.2f} {_within(found.kappa.interval, '.2f')}  {word}"
    for name, rate in (("sensitivity", found.sensitivity), ("specificity", found.specificity)):
        if rate is not None:
            yield f"{name:22}{_rate(rate)}"
    yield f"{'bias':22}{found.bias:+.1%} {_within(found.bias_interval)}  {_direction(found)}"
    if found.verbosity is not None:
        ends = found.verbosity.interval
        pays = "length pays with the judge" if ends and ends.low > 0 else "no clear gain from length"
        if ends is None:
            pays = "how sure cannot be said: the replies lie on one line"
        yield f"{'verbosity r':22}{_rate(found.verbosity, form='+.2f')}  {pays}"
    yield ""
    yield "Pass rate"
    yield f"{'  people, labelled':22}{_rate(found.human_rate)}"
    yield f"{'  judge, all':22}{_rate(found.judge_rate)}"
    yield f"{'  corrected (PPI++)':22}{_rate(found.prediction_powered, 'needs labelled and unlabelled replies')}"
    yield f"{'  corrected (R–G)':22}{_rate(found.rogan_gladen, 'the judge is not better than chance')}"
    yield ""
    yield "Mean"
    yield f"{'  judge, all':22}{_rate(found.judge_mean)}"
    yield f"{'  corrected (PPI++)':22}{_rate(found.corrected_mean, 'needs labelled and unlabelled replies')}"
    if found.change is not None:
        change, lacking = found.change, "needs labelled and unlabelled replies of both runs"
        yield ""
        yield "Change since the base"
        yield f"{'  pass rate, judge':22}{change.judge_rate:+.1%}"
        yield f"{'  corrected (PPI++)':22}{_rate(change.rate, lacking, '+.1%')}"
        yield f"{'  mean, judge':22}{change.judge_mean:+.1%}"
        yield f"{'  corrected (PPI++)':22}{_rate(change.mean, lacking, '+.1%')}"
    yield ""
    yield _needed(found)
    for warning in found.warnings:
        yield f"! {warning}"


def _constant(table: Confusion) -> str:
    """Who gave every reply the same verdict."""
    passes, right = table.true_positive + table.false_positive, table.true_positive + table.false_negative
    told = [name for name, yes in (("the judge", passes), ("people", right)) if yes in (0, table.n)]
    return " and ".join(told)


def _needed(found: Calibration) -> str:
    """How many more labels are wanted."""
    aim = f"± {100 * found.half_width:g} points"
    if found.labels_needed is None:
        return f"A corrected pass rate within {aim} cannot be had from this run: ask more questions."
    more = found.labels_needed - found.labelled
    return f"{aim}: " + (f"label about {more} more replies" if more > 0 else "there are labels enough")


def pairwise_lines(found: Pairwise) -> Iterator[str]:
    """The verdict first, then what it rests on."""
    yield f"Judged by {one_line(found.model, 60)}, in both orders: {found.verdict}"
    yield f"  candidate wins {found.wins}, loses {found.losses}, ties {found.ties} of {found.pairs} pairs"
    if found.win_rate is not None and found.interval is not None:
        p_value = "" if found.p_value is None else f", p = {found.p_value:.3g}"
        yield f"  win rate {found.win_rate:.1%} {_within(found.interval)}{p_value} (ties count half)"
    if found.self_consistency is not None:
        steady = f"{found.self_consistency:.1%} {_within(found.consistency_interval)}"
        yield f"  self-consistency {steady} (same verdict with the order swapped)"
    if found.bias is not None:
        yield from _bias_lines(found.bias)
    if found.canaries:
        passed = sum(canary.passed is True for canary in found.canaries)
        yield f"  canaries: {passed} of {len(found.canaries)} pairs with a known answer decided rightly"
    cost = "" if found.cost is None else f", cost {found.cost:.4f} so far"
    yield f"  {found.calls} calls, {found.cached} answers known before{cost}"
    for warning in found.warnings:
        yield f"! {one_line(warning, 300)}"


def _bias_lines(bias: PairBias) -> Iterator[str]:
    def told(words: str, lean: Lean) -> str:
        return f"  {words} {lean.share:.0%} {_within(lean.interval, '.0%')} of {lean.n}"

    if bias.position is not None:
        preferred = f"; it prefers the {bias.prefers}" if bias.prefers else ""
        yield told("verdicts by order alone: the first named in", bias.position) + preferred
    if bias.length is not None:
        yield told("the longer reply won", bias.length) + " pairs of the same score"
    for own in bias.self_preference:
        line = told(f"{one_line(own.judge, 40)} chose its own family ({own.own}) in", own.lean)
        others = "" if own.others is None else f", the other judges in {own.others.share:.0%}"
        yield f"{line} pairs of the same score{others}"


def _direction(found: Calibration) -> str:
    if found.bias_p_value is None or found.bias_p_value > 0.05:
        return "no clear bias"
    return "the judge is lenient" if found.bias > 0 else "the judge is harsh"


def _rate(rate: Rate | Corrected | None, otherwise: str = "", form: str = ".1%") -> str:
    return otherwise if rate is None else f"{rate.value:{form}} {_within(rate.interval, form)}"


def _within(interval: Interval | None, form: str = ".1%") -> str:
    return "" if interval is None else f"[{interval.low:{form}}, {interval.high:{form}}]"
