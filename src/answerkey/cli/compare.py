"""`answerkey compare`: is one run better than another?"""

import sys
from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import JudgeFlags, json_flag, judge_flags, store_flag, store_opener

if TYPE_CHECKING:
    from answerkey.comparison import Comparison

__all__ = ["compare", "exit_code"]


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="BASE CANDIDATE [MORE ...]")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "inconclusive"]),
    help="Exit 1 if the candidate is worse; with inconclusive also 4 if there is no clear difference.",
)
@click.option("--gate", "gates", multiple=True, metavar="EXPR", help='A condition, as "difference > -0.02".')
@click.option(
    "--cluster",
    metavar="FIELD",
    help="Questions with the same value of this field of the golden set count as one (default: cluster, template, "
    "conversation).",
)
@click.option("--markdown", is_flag=True, help="Print Markdown, for a pull request.")
@judge_flags
@store_flag
@json_flag
def compare(
    runs: tuple[str, ...],
    fail_on: str | None,
    gates: tuple[str, ...],
    cluster: str | None,
    markdown: bool,
    judge: JudgeFlags,
    store: str | None,
    as_json: bool,
) -> int:
    """Say whether the candidate is better than the base: paired by question, with its uncertainty.

    With more than two runs, rank them all. With --judge, a model also says of each pair of replies which is better.

    \b
    Examples:
      answerkey compare latest~1 latest
      answerkey compare production latest --fail-on regression
      answerkey compare latest~1 latest --judge gpt-4o-mini
      answerkey compare gpt-small gpt-large local --json
    """
    import msgspec

    from answerkey.comparison import compare_runs
    from answerkey.comparison.columns import CLUSTER_FIELDS, columns_from_store
    from answerkey.comparison.run_ranking import rank_runs
    from answerkey.config import load_settings
    from answerkey.errors import UsageError
    from answerkey.evaluation.verdicts import with_wordings
    from answerkey.gate import parse_gate
    from answerkey.report.comparison_text import (
        comparison_markdown,
        print_comparison,
        print_ranking,
    )
    from answerkey.report.result_rows import encode

    if len(runs) < 2:
        raise UsageError(
            "compare needs two runs: a base and a candidate, as in: answerkey compare latest~1 latest"
        )
    if len(runs) > 2 and (fail_on or gates or markdown or judge.models):
        raise UsageError("--fail-on, --gate, --judge and --markdown compare two runs; give exactly two")
    parsed = [parse_gate(gate) for gate in gates]
    fields = CLUSTER_FIELDS if cluster is None else (cluster,)
    settings = load_settings()
    pair_judge = judge.pair_judge(settings)
    judged = None
    with store_opener(settings, store)() as opened:
        infos = [opened.find_run(reference) for reference in runs]
        if len({info.id for info in infos}) < len(infos):
            raise UsageError("the runs to compare are the same run; name different ones")
        columns = columns_from_store(opened, infos, cluster_fields=fields)
        if cluster is not None and all(column.clusters is None for column in columns):
            raise UsageError(f"--cluster {cluster}: no question of these runs has such a field")
        if len(columns) > 2:
            ranking = rank_runs(columns)
            if as_json:
                sys.stdout.buffer.write(encode(msgspec.to_builtins(ranking)) + b"\n")
            else:
                print_ranking(ranking)
            return 0
        comparison = with_wordings(compare_runs(*columns), opened, infos[1])
        if pair_judge is not None:
            from answerkey.evaluation.pairwise import judge_runs
            from answerkey.evaluation.waiting import wait_for

            judged = wait_for(judge_runs(opened, infos[0], infos[1], pair_judge))
        results = []
        if parsed:
            from answerkey.gate import evaluate_gates
            from answerkey.model.run_document import run_header

            header = run_header(opened.load_run(infos[1]))
            results = evaluate_gates(parsed, header, comparison.to_dict())
    if as_json:
        document = comparison.to_dict() | {"gates": [msgspec.to_builtins(result) for result in results]}
        if judged is not None:
            document["judge"] = msgspec.to_builtins(judged)
        sys.stdout.buffer.write(encode(document) + b"\n")
    elif markdown:
        sys.stdout.buffer.write(comparison_markdown(comparison).encode())
    else:
        print_comparison(comparison)
        if judged is not None:
            from answerkey.report.pairwise_text import pairwise_lines

            click.echo("\n".join(pairwise_lines(judged)))
        for result in results:
            click.echo(f"gate {'passed' if result.passed else 'FAILED'}: {result.gate} ({result.value})")
    if not all(result.passed for result in results):
        return 1
    return exit_code(comparison, fail_on)


def exit_code(comparison: "Comparison", fail_on: str | None) -> int:
    """1 for a regression and 4 for an inconclusive comparison, where asked for."""
    if fail_on is not None and comparison.verdict == "worse":
        return 1
    if fail_on == "inconclusive" and comparison.verdict == "no clear difference":
        return 4
    return 0
