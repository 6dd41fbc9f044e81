"""The dashboard shows the claims without a model and those of the judge one under the other."""

import re

from answerkey.model.options import Scoring
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply, ToolCall
from answerkey.model.run import RunInfo
from answerkey.model.run_tally import summarise
from answerkey.model.scorecard import Score
from answerkey.model.trial import Trial
from answerkey.scorers.plan import make_grader
from answerkey.store import open_store
from store.filling import START, finished

from .serving import serving


def test_judge_groundedness_stands_beside_groundedness(tmp_path):
    question = Question(id="income", question="What was our income?")
    call = ToolCall(name="query", result=[{"tenant": "Porter", "amount": 16144}], result_seen=True)
    reply = Reply(text="You received $16,144 from Maria Ortega.", tool_calls=(call,))
    judged = Score(
        "judge_groundedness",
        0.0,
        details={
            "model": "judge-9",
            "claims": [{"claim": "It came from <i>Maria</i>.", "supported": False, "evidence": "no Maria"}],
        },
    )
    card = make_grader(Scoring()).grade(question, (reply,), [[judged]])
    info = RunInfo(
        id="abcd1",
        name="one",
        status="running",
        created_at=START.isoformat(),
        target="python:bot",
        target_hash="t",
        question_set="one",
        question_set_hash=QuestionSet(questions=(question,)).hash,
        weights=Scoring().weights,
        scoring_hash="s",
    )
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        store.create_run(info, QuestionSet(questions=(question,), name="one"))
        store.add(info, [Trial(question, 1, 0, (reply,), card)])
        result = Trial(question=question, number=1, replies=(reply,), scorecard=card)
        store.finish_run(finished(info), summarise([result], planned=1))
    with serving(lambda: open_store(path)) as client:
        page = client.get("/runs/abcd1/questions/income?at=0").text
    rows = re.findall(r'<tr>\s*<th scope="row"><bdi>(.*?)</bdi></th>\s*<td class="number">(.*?)</td>', page)
    assert ("without a model", "50%") in rows
    assert ("by judge-9", "0%") in rows
    assert rows.index(("without a model", "50%")) + 1 == rows.index(("by judge-9", "0%"))
    assert "Maria Ortega: no source or tool result has this name" in page
    assert "&lt;i&gt;Maria" in page
    assert "<i>Maria" not in page
