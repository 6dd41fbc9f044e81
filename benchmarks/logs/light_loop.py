"""The job of `answerkey score` as the lightest loop with the standard library: substrings only, and two words that mark an error.

It writes the id and the score of each reply, and prints the mean and the grades.
"""

import json
import sys
from collections import Counter

GRADES = ((0.9, "A"), (0.8, "B"), (0.7, "C"), (0.6, "D"), (0.0, "F"))


def main(path: str, out_path: str) -> None:
    scores, grades = [], Counter()
    with open(path) as lines, open(out_path, "w") as out:
        for line in lines:
            row = json.loads(line)
            text = row.get("answer") or ""
            lowered = text.lower()
            used = row.get("tools_used") or []
            tools = all(tool in used for tool in row["expected_tools"])
            keywords = row["expected_keywords"]
            found = sum(keyword.lower() in lowered for keyword in keywords)
            quality = found / len(keywords) if keywords else 1.0
            error = not text.strip() or "encountered an error" in lowered or "traceback" in lowered
            points = round(0.4 * tools + 0.4 * quality + 0.2 * (not error), 9)
            scores.append(points)
            grades[next(letter for bound, letter in GRADES if points >= bound)] += 1
            out.write(json.dumps({"id": row["id"], "score": points}) + "\n")
    print(json.dumps({"score": sum(scores) / len(scores), "grades": grades}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
