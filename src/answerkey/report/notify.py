"""Notifications: a failed gate, a regression, or satisfaction below a bound, to a webhook, Slack or by mail.

A notification that cannot be sent is reported as a warning; it never changes a result or an exit code.
"""

from collections.abc import Callable, Iterator, Sequence
from email.message import EmailMessage
from functools import partial
from http.client import HTTPException
from smtplib import SMTP, SMTP_SSL, SMTPException
from ssl import create_default_context
from urllib.request import Request, urlopen

import msgspec

from answerkey.config import NoticeEvent, NotifySettings, Secrets, SmtpSettings
from answerkey.errors import ConfigError
from answerkey.model.comparison import cause_lines
from answerkey.model.judgement import FeedbackStats
from answerkey.model.run import GateResult, Run
from answerkey.report.wording import comparison_headline, gate_words, percent, score_text
from answerkey.text.normalise import for_terminal, one_line

_TIMEOUT_S = 10.0
_LINES = 12
_WIDTH = 300


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent; a webhook gets all of it as JSON."""

    # What happened, the first one first.
    events: tuple[NoticeEvent, ...]
    title: str
    # The reasons, most important first.
    lines: tuple[str, ...]
    run: str = ""
    target: str = ""
    score: float | None = None
    grade: str | None = None

    @property
    def text(self) -> str:
        """The notice as plain text."""
        return "\n".join([self.title, *(f"- {line}" for line in self.lines)])


def run_notice(run: Run, settings: NotifySettings) -> Notice | None:
    """The notice of a finished run; None if nothing happened that the settings name."""
    failed = [gate for gate in run.gates if not gate.passed]
    comparison = run.comparison
    worse = comparison is not None and comparison.regression
    events = _events({"gate": bool(failed), "regression": worse}, settings)
    if not events:
        return None
    causes = [] if comparison is None else cause_lines(comparison.causes, comparison.lost)
    headline = [] if comparison is None else [comparison_headline(comparison)]
    name = one_line(run.info.name or run.id, 80)
    what = f"{len(failed)} of {len(run.gates)} gates failed" if failed else "worse than the baseline"
    return Notice(
        events=events,
        title=f"answerkey: {name}: {what} ({run.summary.grade or '–'}, {score_text(run.summary.score)})",
        lines=_lines([*causes, *(gate_words(gate) for gate in failed), *headline]),
        run=run.id,
        target=one_line(run.info.target, 200),
        score=run.summary.score,
        grade=run.summary.grade,
    )


def feedback_notice(
    figures: FeedbackStats, gates: Sequence[GateResult], settings: NotifySettings
) -> Notice | None:
    """The notice of users' verdicts: satisfaction below its bound, or a failed gate on it."""
    failed = [gate_words(gate) for gate in gates if not gate.passed]
    low, bound = figures.satisfaction, settings.satisfaction
    below = low is not None and bound is not None and low < bound
    events = _events({"satisfaction": below, "gate": bool(failed)}, settings)
    if not events:
        return None
    about = [f"satisfaction {percent(low)} is below {percent(bound)}"] if below else []
    counts = f"{figures.positive} of {figures.feedback} verdicts are positive"
    return Notice(
        events=events,
        title=f"answerkey: satisfaction {percent(low)}",
        lines=_lines([*about, *failed, counts]),
    )


def _events(happened: dict[NoticeEvent, bool], settings: NotifySettings) -> tuple[NoticeEvent, ...]:
    return tuple(event for event, did in happened.items() if did and event in settings.on)


def _lines(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(one_line(line, _WIDTH) for line in lines[:_LINES])


def send_notice(notice: Notice, settings: NotifySettings) -> Iterator[str]:
    """Send a notice everywhere that is configured; yields a line for each place that could not be reached."""
    secrets = Secrets()
    senders: dict[str, Callable[[], None]] = {}
    if settings.webhook:
        senders["webhook"] = partial(_post, settings.webhook, notice, secrets)
    if settings.slack:
        senders["slack"] = partial(_post, settings.slack, {"text": _for_slack(notice.text)}, secrets)
    if settings.smtp is not None:
        senders["smtp"] = partial(_mail, notice, settings.smtp, secrets)
    for name, send in senders.items():
        try:
            send()
        except (OSError, ValueError, HTTPException, SMTPException, ConfigError) as error:
            message = one_line(for_terminal(secrets.redact(str(error))), _WIDTH) or type(error).__name__
            yield f"[notify] {name}: not sent: {message}; the result is stored, and the exit code is unchanged"


def _post(address: str, body: object, secrets: Secrets) -> None:
    url = str(secrets.expand(address, "[notify]"))
    if not url.startswith(("http://", "https://")):
        raise ConfigError("the address must begin with https:// or http://")
    request = Request(url, data=msgspec.json.encode(body), headers={"Content-Type": "application/json"})  # noqa: S310  # checked
    with urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310  # checked above
        response.read(1)


def _for_slack(text: str) -> str:
    """A text in which nothing is Slack's markup: <!channel> would alert everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _mail(notice: Notice, smtp: SmtpSettings, secrets: Secrets) -> None:
    message = EmailMessage()
    message["Subject"] = one_line(notice.title, 200)
    message["From"], message["To"] = smtp.sender, ", ".join(smtp.to)
    message.set_content(notice.text + "\n")
    connect = SMTP_SSL if smtp.tls == "always" else SMTP
    with connect(smtp.host, smtp.port, timeout=_TIMEOUT_S) as server:
        if smtp.tls == "starttls":
            server.starttls(context=create_default_context())
        if smtp.user:
            server.login(
                secrets.expand(smtp.user, "[notify.smtp]"), secrets.expand(smtp.password, "[notify.smtp]")
            )
        server.send_message(message)
