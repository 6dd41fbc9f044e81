"""The pytest plugin: `pytest --answerkey golden.jsonl --answerkey-target T`, one test item per question; a marker and fixtures.

Results of xdist workers reach the controller inside the test reports. There they are stored as one run, and each gate
is reported as one more test. pytest loads this module in every project with answerkey installed, so it imports nothing
of answerkey until it is used.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from answerkey.model.question import Question, QuestionSet
    from answerkey.model.run import Run, RunInfo
    from answerkey.model.scorecard import Trial
    from answerkey.protocols import BaseTarget
    from answerkey.runs.context import RunContext

_PROPERTY = "answerkey-result"
# Message about the failed gates of a test's run.
_FAILED_GATES = pytest.StashKey[str]()
_MARKER = "answerkey(questions, target=None, gates=(), **options): the golden set of a test with answerkey_case or answerkey_run"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("answerkey", "grade a chatbot against a golden set")
    group.addoption("--answerkey", metavar="QUESTIONS", help="golden set whose questions become test items")
    group.addoption("--answerkey-target", metavar="T", help="the chatbot: http://…, file.py:function, demo …")
    group.addoption(
        "--answerkey-gate",
        metavar="EXPR",
        action="append",
        default=[],
        help='a gate, e.g. "score >= 0.85", reported as a test; with gates, questions below the pass mark are xfail',
    )
    group.addoption("--answerkey-baseline", metavar="RUN", help="a run to compare with")
    group.addoption("--answerkey-name", metavar="N", default="pytest", help="name of the run in the store")
    group.addoption("--answerkey-store", metavar="URL", help="URL of the store")


def pytest_configure(config: pytest.Config) -> None:
    """Start only if a golden set is given; an error ends pytest with one line."""
    config.addinivalue_line("markers", _MARKER)
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
        from answerkey.runs.context import choose_target, make_context
        from answerkey.runs.stored import find_baseline

        self.config = config
        settings = load_settings()
        options = settings.options(
            name=config.getoption("--answerkey-name"),
            gates=tuple(config.getoption("--answerkey-gate")) or None,
            baseline=config.getoption("--answerkey-baseline"),
            store=config.getoption("--answerkey-store"),
            concurrency=1,
        )
        self.questions: QuestionSet = read_questions(
            path, registry=settings.scorer_registry, functions=settings.row_functions
        )
        self.context: RunContext = make_context(options, settings)
        given = config.getoption("--answerkey-target") or None
        self.target_spec = str(choose_target(given, settings, questions=path, options=options))
        self.target: BaseTarget = self.context.target(self.target_spec)
        self.loop: asyncio.AbstractEventLoop | None = None
        # Position → result, in the reporting process: the only one, or the controller of xdist.
        self.results: dict[int, Trial] = {}
        self.unreachable: str | None = None
        self.run: Run | None = None
        self.summary: list[str] = []
        self.baseline: RunInfo | None = None
        if not self._is_worker:
            self.baseline = find_baseline(settings, options)

    @property
    def _is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    # Collecting

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Append the questions before `-k` and `-m` select items."""
        collector = _Questions.from_parent(session, name=str(self.config.getoption("--answerkey")))
        seen: dict[str, int] = {}
        for position, question in enumerate(self.questions):
            name = _test_id(question.id)
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                name = f"{name} ({seen[name]})"
            given = {"name": name, "question": question, "position": position, "grading": self}
            items.append(_QuestionItem.from_parent(collector, **given))

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
        from answerkey.model.scorecard import Trial
        from answerkey.runs.run import ask_and_grade

        planned = [Trial(question, 1, position)]
        [trial] = [trial async for trial in ask_and_grade(self.context, self.target, planned)]
        return trial

    # Reporting

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather results; under xdist this runs in the controller for every worker's reports."""
        import msgspec

        from answerkey.model.scorecard import Trial

        for name, value in report.user_properties:
            if name == _PROPERTY and report.when == "call":
                position, _, payload = str(value).partition(":")
                self.results[int(position)] = msgspec.json.decode(payload, type=Trial)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Close the target; in the reporting process store the run, evaluate its gates and set the exit code."""
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
        # Whole replies, which would end up in a JUnit file.
        self.results.clear()

    def _conclude(self, session: pytest.Session) -> None:
        from answerkey.report.wording import gate_words, range_text, score_text
        from answerkey.runs.run import store_results
        from answerkey.runs.stored import compare_with_baseline, open_configured_store, with_gates

        results = [result for _, result in sorted(self.results.items())]
        with open_configured_store(self.context.settings, self.context.options.store) as store:
            # An ordinary run, for `compare` and `show`.
            run = store_results(self.context, store, results, self.questions, self.target, self.target_spec)
            if self.baseline is not None:
                run = compare_with_baseline(run, self.baseline, store)
            run = with_gates(run, self.context.gates)
        self.run = run
        interval = range_text(run.summary.interval)
        self.summary = [
            f"run {run.id}: score {score_text(run.summary.score)} ({run.summary.grade}, 95% interval {interval}), "
            f"{run.summary.passed} of {run.summary.questions} questions passed"
        ]
        if run.comparison is not None:
            from answerkey.report.wording import comparison_headline

            base = run.comparison.base
            self.summary.append(f"against {base.name} ({base.id}): {comparison_headline(run.comparison)}")
        for gate in run.gates:
            self.summary.append(f"gate {'passed' if gate.passed else 'FAILED'}: {gate_words(gate)}")
            self._report_gate(gate.gate, "" if gate.passed else f"the gate failed: {gate_words(gate)}")
        if not run.passed:
            session.testsfailed += 1
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _report_gate(self, gate: str, failure: str) -> None:
        """Report a gate as a test, for the counts of pytest and for JUnit files."""
        from answerkey.text.normalise import one_line

        name = f"gate {one_line(gate, 100)}"
        report = pytest.TestReport(
            nodeid=f"{self.config.getoption('--answerkey')}::{name}",
            location=(str(self.config.getoption("--answerkey")), None, name),
            keywords={},
            outcome="failed" if failure else "passed",
            longrepr=failure or None,
            when="call",
        )
        self.config.hook.pytest_runtest_logreport(report=report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Add the score and the gates to the summary of pytest."""
        from answerkey.text.normalise import one_line

        if self.summary:
            terminalreporter.section("answerkey")
            for line in self.summary:
                terminalreporter.write_line(one_line(line, 300), red="FAILED" in line)


class _Questions(pytest.Collector):
    """The golden set as the parent node of its questions."""

    def collect(self) -> Iterator[pytest.Item]:
        """The items are made by the plugin."""
        return iter(())


class _BelowPassMarkError(Exception):
    """A question below the pass mark, with the message to print."""


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

        result = self.grading.ask(self.question, self.position)
        self.user_properties.append((_PROPERTY, f"{self.position}:{msgspec.json.encode(result).decode()}"))
        if not result.passed:
            if self.grading.context.gates:
                pytest.xfail("below the pass mark; the gates decide")
            raise _BelowPassMarkError("\n".join(_explain(result)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The reasons in a few lines instead of a traceback of answerkey's code."""
        from answerkey.errors import AnswerkeyError

        if isinstance(excinfo.value, _BelowPassMarkError | AnswerkeyError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The line of the question in the golden set."""
        line = None if self.question.line is None else self.question.line - 1
        return Path(str(self.config.getoption("--answerkey"))), line, self.name


def _explain(result: "Trial") -> Sequence[str]:
    from answerkey.report.detail import losses_of
    from answerkey.report.wording import score_text
    from answerkey.text.normalise import one_line

    lines = [f"score {score_text(result.scorecard.total)}"]
    lines += [f"  {loss}" for loss in losses_of(result.scorecard)]
    for turn, reply in zip(result.question.asks, result.replies, strict=False):
        lines += [
            f"question: {one_line(turn.question, 300)}",
            f"reply: {one_line(reply.text or '(null)', 600)}",
        ]
    return lines


# Marker and fixtures for custom tests


class AnswerkeyCase:
    """A golden case for a test that asks the chatbot itself."""

    def __init__(self, case: "Question") -> None:
        self.case = case
        self.id = case.id
        self.question = case.question

    def score(self, reply: Any) -> "Trial":
        """Score a reply: text, a dict, a Reply, or anything that a target may return."""
        from answerkey.config import load_settings
        from answerkey.model.scorecard import Trial
        from answerkey.scorers.grader import make_grader
        from answerkey.transcripts.payloads import reply_from_object

        settings = load_settings()
        replies = (reply_from_object(reply),)
        card = make_grader(settings.scoring, settings).grade(self.case, replies)
        return Trial(self.case, replies=replies, scorecard=card)

    def check(self, reply: Any, pass_mark: float | None = None) -> "Trial":
        """Score a reply; below the pass mark, fail the test with the reasons."""
        from answerkey.model.scorecard import passes

        result = self.score(reply)
        if not (result.passed if pass_mark is None else passes(result.score, pass_mark)):
            pytest.fail("\n".join(_explain(result)), pytrace=False)
        return result


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with `answerkey_case` once for every question of its marker's golden set."""
    if "answerkey_case" not in metafunc.fixturenames:
        return
    from answerkey.errors import AnswerkeyError

    try:
        questions = _marked_questions(metafunc.definition)
    except AnswerkeyError as error:
        raise pytest.UsageError(f"answerkey: {error}") from None
    cases = [AnswerkeyCase(question) for question in questions]
    metafunc.parametrize("answerkey_case", cases, ids=[_test_id(case.id) for case in cases])


@pytest.fixture
def answerkey_case(request: pytest.FixtureRequest) -> AnswerkeyCase:
    """A golden case of the marker's set: `answerkey_case.check(my_bot(answerkey_case.question))`."""
    case: AnswerkeyCase = request.param
    return case


@pytest.fixture
def answerkey_run(request: pytest.FixtureRequest) -> "Run":
    """The run of the marker's golden set against its target; the test fails if one of its gates does."""
    import answerkey
    from answerkey.errors import AnswerkeyError
    from answerkey.report.wording import gate_words

    marker = _marker(request.node)
    options = dict(marker.kwargs)
    try:
        run = answerkey.evaluate(_marked_questions(request.node), options.pop("target", None), **options)
    except AnswerkeyError as error:
        pytest.fail(f"answerkey: {error}", pytrace=False)
    failed = [gate for gate in run.gates if not gate.passed]
    if failed:
        lines = [repr(run), *(f"gate failed: {gate_words(gate)}" for gate in failed)]
        request.node.stash[_FAILED_GATES] = "\n".join(lines)
    return run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Fail a test whose gates failed; failing in the fixture would be an error, not a failure."""
    failure = pyfuncitem.stash.get(_FAILED_GATES, None)
    if failure is not None:
        pytest.fail(failure, pytrace=False)


def _marker(node: pytest.Item | pytest.Collector) -> pytest.Mark:
    marker = node.get_closest_marker("answerkey")
    if marker is None:
        raise pytest.UsageError(f'{node.name}: mark the test with @pytest.mark.answerkey("golden.jsonl")')
    return marker


def _marked_questions(node: Any) -> "QuestionSet":
    """The marker's golden set; a path is relative to the test's folder, or else to the current one."""
    from answerkey.config import load_settings
    from answerkey.runs.context import golden_set

    questions = _marker(node).args[0] if _marker(node).args else None
    if isinstance(questions, str | Path):
        beside = Path(node.path).parent / questions
        questions = beside if beside.exists() else questions
    return golden_set(questions, load_settings())


def _test_id(identity: str) -> str:
    from answerkey.text.normalise import one_line

    return one_line(identity, 100) or "question"
