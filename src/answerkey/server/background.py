"""What a server does by itself: maintenance of production replies, alerts about them, and nightly runs."""

import sys
from datetime import datetime, timedelta
from threading import Event

from starlette.applications import Starlette

from answerkey.config import NotifySettings
from answerkey.errors import AnswerkeyError
from answerkey.report.notify import Notice, feedback_notice, send_notice
from answerkey.server.jobs import JobForm, JobQueue
from answerkey.server.rendering import feedback_figures
from answerkey.server.settings import ServerSettings
from answerkey.server.views.experiments import FEWEST_VERDICTS, production_needs
from answerkey.store.feedback import FeedbackFilter
from answerkey.store.maintenance import delete_production
from answerkey.store.sql import SqlStore

# Between two maintenance runs.
_MAINTENANCE_SECONDS = 20.0
# What is still so is sent again after a week.
_REMINDED = timedelta(days=7)


def run_maintenance_loop(app: Starlette, stopped: Event) -> None:
    """Run maintenance until shutdown; a problem is printed once."""
    printed = None
    while not stopped.is_set():
        problem = run_maintenance(app)
        if problem is not None and problem != printed:
            sys.stderr.write(f"answerkey: maintenance failed: {problem}\n")
        printed = problem
        stopped.wait(_MAINTENANCE_SECONDS)


def run_maintenance(app: Starlette) -> str | None:
    """Delete production replies that are too old, grade the others by the current golden set, send alerts, start runs.

    Returns:
        What went wrong, or None.
    """
    days = app.state.settings.production_days
    try:
        store = app.state.holder.get()
        if days is not None:
            delete_production(store, older_than_days=days)
        app.state.grading.regrade(store)
        app.state.nightly.start_due(store, datetime.now())
        problems = app.state.alerts.send_new(store, datetime.now())
    except AnswerkeyError as error:
        return str(error)
    problem: str | None = app.state.grading.problem
    return problem or next(iter(problems), None)


class ProductionAlerts:
    """Notices about production replies, `[notify]`: each once, and again after a week or once it was better in between."""

    def __init__(self, settings: NotifySettings, address: str) -> None:
        self._settings = settings
        # The public address of this server, for links.
        self._address = address
        # What was sent → when. A restarted server sends it again.
        self._sent: dict[str, datetime] = {}

    def send_new(self, store: SqlStore, moment: datetime) -> list[str]:
        """Send what was not sent yet; returns a line for each place that could not be reached."""
        if not self._settings.configured:
            return []
        found = self._notices(store, moment)
        # What is over may happen again.
        self._sent = {name: sent for name, sent in self._sent.items() if name in found}
        problems: list[str] = []
        for name, notice in found.items():
            if moment - self._sent.get(name, datetime.min) < _REMINDED:
                continue
            self._sent[name] = moment
            problems += send_notice(notice, self._settings)
        return problems

    def _notices(self, store: SqlStore, moment: datetime) -> dict[str, Notice]:
        """What is wrong in production now, by a name."""
        notices: dict[str, Notice] = {
            need.kind: Notice(
                events=(need.kind,),
                title=f"answerkey: {need.words}",
                lines=(f"{self._address}{need.address}",),
            )
            for need in production_needs(store, moment.date())
            if need.kind in self._settings.on
        }
        week = FeedbackFilter(since=str(moment.date() - timedelta(days=6)))
        figures = feedback_figures(store, week)
        low = None if figures.feedback < FEWEST_VERDICTS else feedback_notice(figures, (), self._settings)
        return notices if low is None else {**notices, "satisfaction below its bound": low}


class Nightly:
    """Starts runs at a time of day, `[server] nightly`. A time at which no server ran is not made up for."""

    def __init__(self, settings: ServerSettings, jobs: JobQueue) -> None:
        self._time = settings.nightly_time
        self._targets = settings.nightly_targets
        self._jobs = jobs
        self._next = None if self._time is None else self._after(datetime.now())

    def _after(self, moment: datetime) -> datetime:
        assert self._time is not None
        today = datetime.combine(moment.date(), self._time)
        return today if today > moment else today + timedelta(days=1)

    def start_due(self, store: SqlStore, moment: datetime) -> None:
        """Start the runs if it is time."""
        if self._next is None or moment < self._next:
            return
        day = f"{self._next:%Y-%m-%d}"
        self._next = self._after(moment)
        for target in self._targets or self._jobs.targets[:1]:
            form = JobForm(action="run", target=target, name=f"nightly {day}")
            self._jobs.start(store, form, "nightly")
