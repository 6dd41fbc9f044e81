"""The job in MLflow: `genai.evaluate` with a function that asks, in its threads, and a scorer of our own; kept in SQLite."""

import os
import tempfile

import standard

os.environ["MLFLOW_GENAI_EVAL_MAX_WORKERS"] = str(standard.CONCURRENCY)

import mlflow
import requests
from mlflow.genai.scorers import scorer

sessions = requests.Session()
sessions.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=standard.CONCURRENCY))
known = {case["question"]: case for case in standard.questions()}
scores: list[float] = []


def chatbot(question: str) -> dict:
    return sessions.post(standard.URL, json={"question": question}).json()


@scorer
def standard_score(inputs: dict, outputs: dict) -> float:
    found = standard.score(known[inputs["question"]], outputs)
    scores.append(found)
    return found


with tempfile.TemporaryDirectory() as folder:
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("job", artifact_location=f"file://{folder}/artifacts")
    mlflow.set_experiment("job")
    data = [{"inputs": {"question": question}} for question in known]
    # It asks once before the evaluation, to see whether the function is traced.
    os.environ["MLFLOW_GENAI_EVAL_SKIP_TRACE_VALIDATION"] = "true"
    result = mlflow.genai.evaluate(data=data, predict_fn=chatbot, scorers=[standard_score])
    assert abs(result.metrics["standard_score/mean"] - sum(scores) / len(scores)) < 1e-9
standard.print_mean(scores)
