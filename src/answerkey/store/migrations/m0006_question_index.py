"""One question of one run is found without looking through the run."""

STATEMENTS = (
    "DROP INDEX scorecards_by_question",
    "CREATE INDEX scorecards_by_question ON scorecards (question_id, run_id)",
)
