"""The reference chatbot says nothing that its tools did not give it."""

import answerkey


def test_every_answer_to_the_bundled_questions_is_grounded():
    run = answerkey.evaluate(target="demo")
    loose = {
        result.question.id: [claim["text"] for claim in card.findings["groundedness"]["unsupported"]]
        for result in run.results
        for card in (result.scorecard.turns or (result.scorecard,))
        if card.metrics.get("groundedness") not in (None, 1.0)
    }
    assert loose == {}
    assert run.summary.metrics["groundedness"] == 1.0
