"""Reports: one view of a run, shown on the terminal and written as HTML, Markdown, JSON, rows and JUnit."""
