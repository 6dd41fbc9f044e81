"""The dashboard shows what a judge says of the claims, and links for the reader's own eye."""

import html
import re

import msgspec

from answerkey.model.options import Scoring
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply, ToolCall
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Score, Trial
from answerkey.model.tally import summarise
from answerkey.scorers.grader import make_grader
from answerkey.store import open_store
from comparison.made import canary, judge_record
from store.filling import START, finished

from .serving import serving


def test_claims_and_links_of_a_reply(tmp_path):
    question = Question(id="income", question="What was our income?")
    call = ToolCall(name="query", result=[{"tenant": "Porter", "amount": 16144}], result_seen=True)
    reply = Reply(text="You received $16,144 from Maria Ortega.", tool_calls=(call,))
    judged = Score(
        "groundedness",
        0.0,
        details={
            "model": "judge-9",
            "reliability": "not calibrated",
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
        judge = judge_record(
            "judge-9",
            judged=1,
            calls=5,
            canaries=(canary(1.0, model="judge-9", kind="confidently wrong", passed=False),),
            reliable=False,
            unreliable_because=("judge-9 gave the 'confidently wrong' canary 1.00",),
        )
        done = msgspec.structs.replace(finished(info), judge=judge)
        store.finish_run(done, summarise([result], planned=1))
    with serving(lambda: open_store(path)) as client:
        page = client.get("/runs/abcd1/questions/income?at=0").text
        figures = html.unescape(client.get("/runs/abcd1").text)
    assert "the judge's scores are unreliable: judge-9 gave the 'confidently wrong' canary 1.00" in figures
    assert (
        "Judged by judge-9: 1 of 1 reply, 5 calls, UNRELIABLE: canaries failed, never calibrated." in figures
    )
    rows = re.findall(r'<tr>\s*<th scope="row"><bdi>(.*?)</bdi></th>\s*<td class="number">(.*?)</td>', page)
    assert ("by judge-9", "0%") in rows
    assert "not calibrated" in page
    assert re.search(
        r'<mark class="linked" title="tool_calls\[0\]\.result\[0\]\.amount[^"]*">16,144</mark>', page
    )
    assert re.search(r'<mark class="unlinked" title="not found[^"]*">Maria Ortega</mark>', page)
    assert re.search(r"Not found:</span>\s*<span class=\"chip\"><bdi>Maria Ortega", page)
    assert "&lt;i&gt;Maria" in page
    assert "<i>Maria" not in page
