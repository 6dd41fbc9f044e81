# /// script
# dependencies = ["duckdb"]
# ///
"""The job of plain_loop.py as one query of DuckDB, on all cores.

It leaves out what the plain loop leaves out (the error detector's model, intervals, trials of a question counted as one, bad
rows), and writes no rows.
"""

import sys

import duckdb
from plain_loop import ERROR_TEXT, MALFORMED

# RE2 says (?m) for lines.
TRACE = r"(?m)traceback \(most recent|^\s+at \S+\(|\w+(?:error|exception):"
SCORED = r"""
    with given as (
        select category, coalesce(answer, '') as text, lower(text) as lowered, coalesce(tools_used, []) as used,
            coalesce(expected_tools, []) as tools, coalesce(expected_keywords, []) as keywords,
            list_transform(regexp_extract_all(text, '\d[\d,]*(?:\.\d+)?'),
                lambda n: try_cast(replace(n, ',', '') as double)) as numbers
        from read_json($path, format = 'newline_delimited', columns = {category: 'varchar', answer: 'varchar',
            tools_used: 'varchar[]', expected_tools: 'varchar[]', expected_keywords: 'varchar[]'})
    ), parts as (
        select category, list_has_all(used, tools)::int as tool_usage,
            case when len(keywords) = 0 then 1.0 else len(list_filter(keywords, lambda k: contains(lowered, lower(k))
                or list_contains(numbers, try_cast(replace(trim(k, '$€£%'), ',', '') as double)))) / len(keywords) end as quality,
            not (trim(text) = '' or regexp_matches(lowered, $error_text) or regexp_matches(lowered, $trace)
                or regexp_matches(lowered, $malformed)) as handled
        from given
    ), scored as (
        select category, round(0.4 * tool_usage + 0.4 * quality + 0.2 * handled::int, 9) as score from parts
    )
"""


def main(path: str) -> None:
    malformed = MALFORMED.pattern.replace(r"\ufffd", "\ufffd")
    given = {"path": path, "error_text": ERROR_TEXT.pattern, "trace": TRACE, "malformed": malformed}
    grades = "count(*) filter (score >= 0.9), count(*) filter (score >= 0.8 and score < 0.9), count(*) filter (score < 0.6)"
    query = f"{SCORED} select category, avg(score), count(*), {grades} from scored group by rollup (category)"
    for row in duckdb.execute(query, given).fetchall():
        print(*row)


if __name__ == "__main__":
    main(sys.argv[1])
