"""The job of `answerkey score` written by hand with the standard library alone.

It reads JSON Lines, scores to the standard (tools, keywords with numbers of equal value, errors by three patterns), writes a row
a reply and prints the mean, the grades and the mean of each category.
"""

import json
import re
import sys
from collections import Counter, defaultdict

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# The kinds of error that a text shows, as one would write them down in an hour.
ERROR_TEXT = re.compile(
    r"encountered an error|something went wrong|try again|could not be completed|internal server error|unable to process"
    r"|timed out|service unavailable"
)
TRACE = re.compile(r"traceback \(most recent|^\s+at \S+\(|\w+(?:error|exception):", re.MULTILINE)
MALFORMED = re.compile(r"\{\{|\[object |\ufffd|<\|im_")


def value(text: str) -> float | None:
    try:
        return float(text.strip("$€£%").replace(",", ""))
    except ValueError:
        return None


def main(path: str, out_path: str) -> None:
    scores, grades, categories = [], Counter(), defaultdict(list)
    with open(path) as lines, open(out_path, "w") as out:
        for line in lines:
            row = json.loads(line)
            text = row.get("answer") or ""
            lowered = text.lower()
            used = row.get("tools_used") or []
            tools = float(all(tool in used for tool in row.get("expected_tools", [])))
            found, missing, numbers = [], [], None
            for keyword in row.get("expected_keywords", []):
                said = keyword.lower() in lowered
                if not said and (wanted := value(keyword)) is not None:
                    if numbers is None:
                        numbers = {float(number.replace(",", "")) for number in NUMBER.findall(text)}
                    said = wanted in numbers
                (found if said else missing).append(keyword)
            quality = len(found) / (len(found) + len(missing)) if found or missing else 1.0
            error = (
                row.get("error")
                or not text.strip()
                or ERROR_TEXT.search(lowered)
                or TRACE.search(lowered)
                or MALFORMED.search(lowered)
            )
            handled = 0.0 if error else 1.0
            points = round(0.4 * tools + 0.4 * quality + 0.2 * handled, 9)
            grade = (
                "A"
                if points >= 0.9
                else "B"
                if points >= 0.8
                else "C"
                if points >= 0.7
                else "D"
                if points >= 0.6
                else "F"
            )
            scores.append(points)
            grades[grade] += 1
            categories[row.get("category")].append(points)
            components = {"tool_usage": tools, "response_quality": quality, "error_handling": handled}
            result = {"id": row["id"], "score": points, "grade": grade, "components": components}
            out.write(json.dumps({**result, "found": found, "missing": missing}) + "\n")
    means = {name: sum(values) / len(values) for name, values in categories.items()}
    print(json.dumps({"score": sum(scores) / len(scores), "grades": grades, "categories": means}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
