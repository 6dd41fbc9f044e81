"""The job in pydantic-evals: a task that asks, an evaluator of our own. It keeps its results in memory only."""

import asyncio
from dataclasses import dataclass

import standard
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext


@dataclass
class StandardScore(Evaluator):
    """The standard score."""

    def evaluate(self, ctx: EvaluatorContext) -> float:
        return standard.score(ctx.metadata, ctx.output)


async def main() -> list[float]:
    cases = [Case(name=case["id"], inputs=case["question"], metadata=case) for case in standard.questions()]
    dataset = Dataset(name="job", cases=cases, evaluators=[StandardScore()])
    async with standard.new_session() as session:

        async def chatbot(question: str) -> dict:
            return await standard.ask(session, question)

        report = await dataset.evaluate(chatbot, max_concurrency=standard.CONCURRENCY, progress=False)
    return [case.scores["StandardScore"].value for case in report.cases]


standard.print_mean(asyncio.run(main()))
