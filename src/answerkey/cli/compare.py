"""`answerkey compare`: is one run better than another?"""

import sys

import click

from answerkey.cli.flags import (
    JudgeFlags,
    fail_on_flag,
    gate_flag,
    json_flag,
    judge_flags,
    opened_store,
    store_flag,
)
from answerkey.cli.outcome import print_document, verdict_code
from answerkey.config import load_settings
from answerkey.errors import UsageError

__all__ = ["compare"]


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="BASE CANDIDATE [MORE ...]")
@fail_on_flag
@gate_flag
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
    from answerkey.evaluation.verdicts import with_wordings
    from answerkey.gate import evaluate_gates, parse_gate
    from answerkey.model.run_document import run_header

    if len(runs) < 2:
        raise UsageError(
            "compare needs two runs: a base and a candidate, as in: answerkey compare latest~1 latest"
        )
    if len(runs) > 2 and (fail_on or gates or markdown or judge.model):
        raise UsageError("--fail-on, --gate, --judge and --markdown compare two runs; give exactly two")
    parsed = [parse_gate(gate) for gate in gates]
    fields = CLUSTER_FIELDS if cluster is None else (cluster,)
    settings = load_settings()
    pair_judge = judge.pair_judge(settings)
    judged = None
    with opened_store(store) as opened:
        infos = [opened.find_run(reference) for reference in runs]
        if len({info.id for info in infos}) < len(infos):
            raise UsageError("the runs to compare are the same run; name different ones")
        columns = columns_from_store(opened, infos, cluster_fields=fields)
        if cluster is not None and all(column.clusters is None for column in columns):
            raise UsageError(f"--cluster {cluster}: no question of these runs has such a field")
        if len(columns) > 2:
            ranking = rank_runs(columns)
            if as_json:
                print_document(msgspec.to_builtins(ranking))
            else:
                from answerkey.report.comparison_text import print_ranking

                print_ranking(ranking)
            return 0
        comparison = with_wordings(compare_runs(*columns), opened, infos[1])
        if pair_judge is not None:
            from answerkey.evaluation.pair_judging import judge_runs
            from answerkey.evaluation.waiting import wait_for

            judged = wait_for(judge_runs(opened, infos[0], infos[1], pair_judge))
        results = []
        if parsed:
            results = evaluate_gates(parsed, run_header(opened.load_run(infos[1])), comparison.to_dict())
    if as_json:
        document = comparison.to_dict() | {"gates": results}
        if judged is not None:
            document["judge"] = judged.document()
        print_document(document)
    elif markdown:
        from answerkey.report.comparison_markdown import comparison_markdown

        sys.stdout.buffer.write(comparison_markdown(comparison).encode())
    else:
        from answerkey.report.comparison_text import print_comparison

        print_comparison(comparison)
        if judged is not None:
            from answerkey.report.judge_text import pairwise_lines

            click.echo("\n".join(pairwise_lines(judged)))
        for result in results:
            click.echo(f"gate {'passed' if result.passed else 'FAILED'}: {result.gate} ({result.value})")
    if not all(result.passed for result in results):
        return 1
    return verdict_code(comparison.verdict, fail_on)
