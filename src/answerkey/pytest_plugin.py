"""The pytest plugin: `pytest --answerkey golden.jsonl --answerkey-target T`, each question a test item.

Results travel from xdist's workers to the controller inside the test reports; there they become one ordinary run in the
store, and the gates decide the session's exit code. pytest loads this module in every project that has answerkey
installed, so it imports nothing of ours until `--answerkey` is given.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from answerkey.evaluation.assembly import Assembly
    from answerkey.model.question import Question, QuestionSet
    from answerkey.model.run import Run, RunInfo
    from answerkey.model.trial import Trial
    from answerkey.protocols import Target

__all__ = ["pytest_addoption", "pytest_configure"]

_PROPERTY = "answerkey-result"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our options, in a group of their own."""
    group = parser.getgroup("answerkey", "grade a chatbot against a golden set")
    group.addoption("--answerkey", metavar="QUESTIONS", help="golden set whose questions become test items")
    group.addoption("--answerkey-target", metavar="T", help="the chatbot: http://…, file.py:function, demo …")
    group.addoption(
        "--answerkey-gate",
        metavar="EXPR",
        action="append",
        default=[],
        help='a condition such as "score >= 0.85"; with gates, they and not single questions decide the exit code',
    )
    group.addoption("--answerkey-baseline", metavar="RUN", help="a run to compare with")
    group.addoption("--answerkey-name", metavar="N", default="pytest", help="name of the run in the store")
    group.addoption("--answerkey-store", metavar="URL", help="where the run is kept")


def pytest_configure(config: pytest.Config) -> None:
    """Begin only if a golden set is given; a mistake ends pytest with one line."""
    path = config.getoption("--answerkey", default=None)
    if path is None:
        return
    from answerkey.errors import AnswerkeyError

    try:
        config.pluginmanager.register(_Grading(config, Path(path)), "answerkey-grading")
    except AnswerkeyError as error:
        raise pytest.UsageError(f"answerkey: {error}") from None


class _Grading:
    """One golden set in one pytest session (or one worker's part of it)."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        from answerkey.config import load_settings
        from answerkey.datasets.golden_sets import read_questions
        from answerkey.evaluation.assembly import assemble
        from answerkey.evaluation.stored import find_baseline

        self.config = config
        settings = load_settings()
        options = settings.options(
            name=config.getoption("--answerkey-name"),
            gates=tuple(config.getoption("--answerkey-gate")) or None,
            baseline=config.getoption("--answerkey-baseline"),
            store=config.getoption("--answerkey-store"),
            concurrency=1,
        )
        self.questions: QuestionSet = read_questions(path)
        self.assembly: Assembly = assemble(options, settings)
        self.target_spec: str = config.getoption("--answerkey-target") or settings.target or "demo"
        self.target: Target = self.assembly.target(self.target_spec)
        self.loop: asyncio.AbstractEventLoop | None = None
        # Position → result, in the process that reports: the only one, or xdist's controller.
        self.results: dict[int, Trial] = {}
        self.others_failed = False
        self.unreachable: str | None = None
        self.run: Run | None = None
        self.summary: list[str] = []
        self.baseline: RunInfo | None = None
        if not self._is_worker:
            self.baseline = find_baseline(settings, options.store, options.baseline)

    @property
    def _is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    # Collecting

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Append the questions before `-k` and `-m` choose among all items."""
        from answerkey.text.sanitise import one_line

        collector = _Questions.from_parent(session, name=str(self.config.getoption("--answerkey")))
        seen: dict[str, int] = {}
        for position, question in enumerate(self.questions):
            name = one_line(question.id, 100) or "question"
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                name = f"{name} ({seen[name]})"
            items.append(
                _QuestionItem.from_parent(
                    collector, name=name, question=question, position=position, grading=self
                )
            )

    # Asking

    def ask(self, question: "Question", position: int) -> "Trial":
        """Ask one question and grade it; the target stays open until the session ends."""
        from answerkey.errors import TargetUnreachableError

        if self.unreachable is not None:
            raise TargetUnreachableError(self.unreachable)
        if self.loop is None:
            loop = asyncio.new_event_loop()
            try:
                loop.run_until_complete(self.target.__aenter__())
            except TargetUnreachableError as error:
                loop.close()
                self.unreachable = str(error)
                raise
            self.loop = loop
        return self.loop.run_until_complete(self._ask(question, position))

    async def _ask(self, question: "Question", position: int) -> "Trial":
        from answerkey.model.trial import Trial

        planned = [Trial(question, 1, position)]
        [asked] = [trial async for trial in self.assembly.engine.ask_all(self.target, planned)]
        return asked.scored(self.assembly.grader.grade(question, asked.replies))

    # Reporting

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather results; under xdist this runs in the controller for every worker's reports."""
        import msgspec

        from answerkey.model.trial import Trial

        for name, value in report.user_properties:
            if name == _PROPERTY and report.when == "call":
                position, _, payload = str(value).partition(":")
                self.results[int(position)] = msgspec.json.decode(payload, type=Trial)
                break
        else:
            self.others_failed = self.others_failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Close the target; in the reporting process keep the run, judge it and set the exit code."""
        if self.loop is not None:
            self.loop.run_until_complete(self.target.__aexit__(None, None, None))
            self.loop.close()
            self.loop = None
        if self._is_worker or not self.results:
            return
        from answerkey.errors import AnswerkeyError

        try:
            self._conclude(session)
        except AnswerkeyError as error:
            self.summary = [f"answerkey: {error}"]
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        # The properties carried whole replies; nobody else wants them, least of all a JUnit file.
        self.results.clear()

    def _conclude(self, session: pytest.Session) -> None:
        from answerkey.evaluation.bookkeeping import keep_results
        from answerkey.evaluation.stored import open_configured_store
        from answerkey.evaluation.verdicts import compare_with_baseline, judge_gates
        from answerkey.report.value_wording import range_text, score_text

        results = [result for _, result in sorted(self.results.items())]
        with open_configured_store(self.assembly.settings, self.assembly.options.store) as store:
            # An ordinary run, which `compare` and `show` find.
            run = keep_results(
                self.assembly, results, self.questions, self.target, store, target_spec=self.target_spec
            )
            if self.baseline is not None:
                run = compare_with_baseline(run, self.baseline, store)
            run = judge_gates(run, self.assembly.gates)
        self.run = run
        interval = range_text(run.summary.interval)
        self.summary = [
            f"run {run.id}: score {score_text(run.summary.score)} ({run.summary.grade}, 95% interval {interval}), "
            f"{run.summary.passed} of {run.summary.questions} questions passed"
        ]
        if run.comparison is not None:
            from answerkey.report.comparison_wording import comparison_headline

            base = run.comparison.base
            self.summary.append(f"against {base.name} ({base.id}): {comparison_headline(run.comparison)}")
        for gate in run.gates:
            self.summary.append(
                f"gate {'passed' if gate.passed else 'FAILED'}: {gate.gate} (the value is {gate.value}){gate.because}"
            )
        if run.gates and not self.others_failed:
            session.exitstatus = pytest.ExitCode.OK if run.passed else pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The score and the gates at the end of pytest's own report."""
        from answerkey.text.sanitise import one_line

        if self.summary:
            terminalreporter.section("answerkey")
            for line in self.summary:
                terminalreporter.write_line(one_line(line, 300), red="FAILED" in line)


class _Questions(pytest.Collector):
    """The golden set as a node, so that items have a parent with the set's name."""

    def collect(self) -> Iterator[pytest.Item]:
        """The items are made by the plugin."""
        return iter(())


class _BelowPassMarkError(Exception):
    """A question that did not pass, with what to print."""


class _QuestionItem(pytest.Item):
    """A question."""

    def __init__(self, *, question: "Question", position: int, grading: _Grading, **rest: Any) -> None:
        super().__init__(**rest)
        self.question = question
        self.position = position
        self.grading = grading

    def runtest(self) -> None:
        """Ask and grade; fails below the pass mark."""
        import msgspec

        from answerkey.model.scorecard import round_score

        result = self.grading.ask(self.question, self.position)
        self.user_properties.append((_PROPERTY, f"{self.position}:{msgspec.json.encode(result).decode()}"))
        score = result.scorecard.total
        if score is None or round_score(score) < self.grading.assembly.options.scoring.pass_mark:
            raise _BelowPassMarkError("\n".join(_explain(result)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """What went wrong in a few lines; a traceback would show our code, not the chatbot's."""
        from answerkey.errors import AnswerkeyError

        if isinstance(excinfo.value, _BelowPassMarkError | AnswerkeyError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the question stands."""
        line = None if self.question.line is None else self.question.line - 1
        return Path(str(self.config.getoption("--answerkey"))), line, self.name


def _explain(result: "Trial") -> Sequence[str]:
    from answerkey.report.losses import losses_of
    from answerkey.report.value_wording import score_text
    from answerkey.text.sanitise import one_line

    lines = [f"score {score_text(result.scorecard.total)}"]
    lines += [f"  {loss}" for loss in losses_of(result.scorecard)]
    for turn, reply in zip(result.question.asks, result.replies, strict=False):
        lines += [
            f"question: {one_line(turn.question, 300)}",
            f"reply: {one_line(reply.text or '(null)', 600)}",
        ]
    return lines
