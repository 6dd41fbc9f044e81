from answerkey.model.judgement import Answer, Spent
from answerkey.store import open_store
from answerkey.store.feedback import SqlJudgements


def answer(key: str, text: str = "{}", cost: float | None = 0.5) -> Answer:
    return Answer(key=key, model="m", text=text, spent=Spent(100, 10, cost))


def test_answers_are_found_by_their_keys_and_the_first_stays(store_url: str) -> None:
    with open_store(store_url) as store:
        kept = SqlJudgements(store)
        kept.add_answers("run-1", [answer("a", "first"), answer("b", "nul \0 and 漢字")])
        kept.add_answers("run-2", [answer("a", "second")])
        found = kept.find_answers(["a", "b", "c", *(f"x{number}" for number in range(1200))])
        assert found == {"a": "first", "b": "nul \ufffd and 漢字"}
    with open_store(store_url) as store:
        assert SqlJudgements(store).find_answers(["a"]) == {"a": "first"}


def test_what_a_run_has_spent_is_known(store_url: str) -> None:
    with open_store(store_url) as store:
        kept = SqlJudgements(store)
        assert kept.spent_on("run-1") == Spent()
        kept.add_answers("run-1", [answer("a"), answer("b", cost=0.25)])
        kept.add_answers("run-2", [answer("c", cost=None)])
        assert kept.spent_on("run-1") == Spent(200, 20, 0.75)
        assert kept.spent_on("run-2") == Spent(100, 10, None)
