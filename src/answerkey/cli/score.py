"""`answerkey score`: grade recorded replies."""

from pathlib import Path

import click

from answerkey.cli.flags import (
    FILE,
    JudgeFlags,
    gate_flag,
    json_flag,
    judge_flags,
    map_flag,
    match_flag,
    output_flag,
    scoring_for,
    store_flag,
)
from answerkey.cli.outcome import conclude, print_document
from answerkey.config import load_settings
from answerkey.errors import UsageError

__all__ = ["score"]


@click.command()
@click.argument("replies", nargs=-1, required=True, type=FILE)
@click.option("--questions", type=FILE, help="The golden set, where rows carry no expectations.")
@map_flag
@match_flag
@click.option("--qrels", type=FILE, help="Judgements: REPLIES is then a TREC run.")
@click.option("--metrics", metavar="NAMES", help="With --qrels: measures, as nDCG@10,P@5,AP,RR.")
@gate_flag
@judge_flags
@store_flag
@output_flag
@json_flag
def score(
    replies: tuple[Path, ...],
    questions: Path | None,
    fields: dict[str, str],
    match: str | None,
    qrels: Path | None,
    metrics: str | None,
    gates: tuple[str, ...],
    judge: JudgeFlags,
    store: str | None,
    outputs: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Grade replies that were recorded earlier, one object a line; the chatbot is not asked and no run is stored.

    With a judge, its answers are kept in the store, so that each is paid for once.

    \b
    Examples:
      answerkey score replies.jsonl --questions golden.jsonl
      answerkey score replies.jsonl --judge gpt-4o-mini --judge-budget 2.00 --judge-price 0.15/0.60
      answerkey score report.json --questions golden.jsonl --map answer=response --map tools_used=checks.tools
      answerkey score log.jsonl -o scored.parquet --json
      answerkey score results.txt --qrels qrels.txt --metrics nDCG@10,P@5,AP,RR
    """
    if qrels is not None or metrics is not None:
        if questions is not None or outputs or gates or fields or match is not None:
            raise UsageError("--qrels evaluates a TREC run alone; it takes --metrics and --json only")
        return _score_trec_run(replies, qrels, metrics, as_json)
    from answerkey.cli.progress import progress_for_terminal
    from answerkey.evaluation.api import score_replies
    from answerkey.report.files import check_output

    settings = load_settings()
    for path in outputs:
        check_output(path)
    scored = score_replies(
        replies,
        questions,
        scoring_for(settings, match),
        judge.settings(settings.judge),
        fields=fields,
        gates=gates,
        store=store,
        settings=settings,
        progress=progress_for_terminal(quiet=as_json, doing="scoring"),
    )
    return conclude(scored, outputs=outputs, as_json=as_json)


def _score_trec_run(runs: tuple[Path, ...], qrels: Path | None, metrics: str | None, as_json: bool) -> int:
    from answerkey.evaluation.trec_run import TREC_MEASURES, evaluate_trec_run

    if qrels is None:
        raise UsageError("--metrics needs the judgements: give them with --qrels FILE")
    if len(runs) != 1:
        raise UsageError("--qrels evaluates one TREC run at a time")
    document = evaluate_trec_run(runs[0], qrels, TREC_MEASURES if metrics is None else metrics)
    if as_json:
        print_document(document)
        return 0
    width = max(len(name) for name in document["metrics"])
    for name, value in document["metrics"].items():
        click.echo(f"{name:<{width}}  {value:.4f}")
    click.echo(f"over {document['queries']} queries in both files", nl=False)
    click.echo(
        f" ({document['queries_without_judgements']} of the run are not judged, "
        f"{document['queries_not_retrieved']} judged ones are not in the run)"
    )
    return 0
