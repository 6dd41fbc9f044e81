# /// script
# dependencies = ["polars"]
# ///
"""The job of plain_loop.py as one lazy frame of Polars, on all cores. It leaves out the same as duckdb_job.py does."""

import sys

import polars as pl
from plain_loop import ERROR_TEXT, MALFORMED

TEXTS = pl.List(pl.String)
SCHEMA = {
    **dict.fromkeys(("category", "answer"), pl.String),
    **dict.fromkeys(("tools_used", "expected_tools", "expected_keywords"), TEXTS),
}
ERRORS = "|".join(
    [
        ERROR_TEXT.pattern,
        r"(?m)traceback \(most recent|^\s+at \S+\(|\w+(?:error|exception):",
        MALFORMED.pattern,
    ]
).replace(r"\ufffd", "\ufffd")


def main(path: str) -> None:
    text, keyword = pl.col("answer").fill_null(""), pl.col("expected_keywords")
    number = keyword.str.strip_chars("$€£%").str.replace_all(",", "").cast(pl.Float64, strict=False)
    numbers = text.str.extract_all(r"\d[\d,]*(?:\.\d+)?")
    rows = (
        pl.scan_ndjson(path, schema=SCHEMA)
        .with_row_index("row")
        .with_columns(
            lowered=text.str.to_lowercase(),
            numbers=numbers.list.eval(pl.element().str.replace_all(",", "").cast(pl.Float64, strict=False)),
            tools=pl.col("expected_tools").list.set_difference("tools_used").list.len() == 0,
        )
        .with_columns(handled=~((text.str.strip_chars() == "") | pl.col("lowered").str.contains(ERRORS)))
    )
    said = (
        rows.explode("expected_keywords")
        .with_columns(
            said=keyword.is_null()
            | pl.col("lowered").str.contains(keyword.str.to_lowercase(), literal=True)
            | pl.col("numbers").list.contains(number).fill_null(value=False)
        )
        .group_by("row")
        .agg(pl.first("category", "tools", "handled"), quality=pl.col("said").mean())
        .with_columns(
            score=(0.4 * pl.col("tools") + 0.4 * pl.col("quality") + 0.2 * pl.col("handled")).round(9)
        )
        .collect()
    )
    print(said["score"].mean())
    print(said.group_by("category").agg(pl.col("score").mean()))
    print([said.filter(pl.col("score") >= limit).height for limit in (0.6, 0.7, 0.8, 0.9)])


if __name__ == "__main__":
    main(sys.argv[1])
