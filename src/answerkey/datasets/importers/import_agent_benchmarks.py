"""Imports benchmarks of tool-calling agents: BFCL's functions and possible answers, tau2's tasks."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from answerkey.datasets.importers.foreign_rows import Format, Losses, finish, numbered_rows
from answerkey.datasets.importers.foreign_values import as_text, asked, exactly
from answerkey.errors import InputError
from answerkey.model.json_value import Json, JsonObject
from answerkey.protocols import Imported


def import_bfcl(paths: Sequence[Path]) -> Imported:
    """Question files with their possible answers: given too, or found in `possible_answer/` beside them."""
    questions, answers = [], dict[str, Any]()
    beside = [path.parent / "possible_answer" / path.name for path in paths]
    for place, row in numbered_rows(
        [*paths, *(path for path in beside if path.is_file() and path not in paths)]
    ):
        if "ground_truth" in row:
            answers[str(row.get("id"))] = row["ground_truth"]
        elif isinstance(row.get("question"), list):
            questions.append((place, row))
        else:
            raise InputError(
                f"{place}: has neither 'question' (a list of turns) nor 'ground_truth'", path=place.path
            )
    losses = Losses()
    found = []
    for place, row in questions:
        losses.place = place
        identity = str(row.get("id"))
        case: JsonObject = {"id": identity, "category": identity.rstrip("0123456789-_")}
        if row.get("function"):
            case["functions"] = [function.get("name") for function in row["function"]]  # type: ignore[union-attr]
        for name in set(row) - {"id", "question", "function"}:
            losses.add(f"'{name}'")
        turns = [asked(messages, losses) or "" for messages in row["question"]]  # type: ignore[union-attr]
        truth = answers.get(identity)
        if len(turns) == 1:
            case |= {"question": turns[0], **_expected(truth, identity, losses)}
        else:
            steps = truth if isinstance(truth, list) and len(truth) == len(turns) else [None] * len(turns)
            case["turns"] = [
                {"question": turn, **_expected(step, identity, losses)}
                for turn, step in zip(turns, steps, strict=True)
                if turn
            ]
        found.append((place, case))
    return finish(found, losses, "BFCL")


def _expected(truth: Any, identity: str, losses: Losses) -> JsonObject:
    """What is to be called: {function: {argument: [acceptable values, "" if it may be left out]}}, or call expressions."""
    if truth is None:
        if "irrelevance" in identity:
            return {"tools": "none"}
        losses.add("what is expected: there is no possible answer")
        return {}
    calls: list[Json] = []
    for call in truth if isinstance(truth, list) else [truth]:
        if isinstance(call, str):
            calls.append(_call_expression(call, losses))
        elif isinstance(call, dict):
            calls += [{"name": name, "arguments": arguments} for name, arguments in call.items()]
    return {"expected_tools": calls} if calls else {}


def _call_expression(text: str, losses: Losses) -> Json:
    """A call such as `cd(folder='document')`, read and never run."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError(text)
        arguments = {str(part.arg): exactly(ast.literal_eval(part.value)) for part in call.keywords}
    except (SyntaxError, ValueError):
        losses.add(f"the arguments of {text.partition('(')[0]!r}")
        return text.partition("(")[0]
    if call.args:
        losses.add("arguments without a name")
    name = ast.unparse(call.func)
    return {"name": name, "arguments": arguments} if arguments else name


def _scenario(value: Any, losses: Losses) -> str | None:
    """What the user wants; who plays the user gets to know more than a single question says."""
    if isinstance(value, dict):
        losses.add("the rest of the user's scenario: the question is why the user calls")
        return as_text(value.get("reason_for_call") or value.get("task_instructions"))
    return as_text(value)


def _actions(value: Any, losses: Losses) -> list[Json]:
    calls: list[Json] = []
    for action in value:
        if action.get("requestor", "assistant") != "assistant":
            losses.add("actions of the user")
            continue
        compared = action.get("compare_args")
        arguments = {
            name: exactly(held)
            for name, held in (action.get("arguments") or {}).items()
            if compared is None or name in compared
        }
        calls.append({"name": action["name"], "arguments": arguments} if arguments else action["name"])
    return calls


def _told(value: Any, losses: Losses) -> list[Json]:
    return [as_text(information) for information in value]


def _assertions(value: Any, losses: Losses) -> list[Json]:
    return [{"rubric": as_text(assertion)} for assertion in value]


# Tasks of a domain (`tasks.json`): a conversation's opening, the actions and what must be told.
import_tau2 = Format(
    name="tau2",
    fields={
        "id": ("id",),
        "question": ("ticket", "user_scenario.instructions"),
        "persona": ("user_scenario.persona",),
        "category": ("user_scenario.instructions.domain",),
        "expected_tools": ("evaluation_criteria.actions",),
        "expected_keywords": ("evaluation_criteria.communicate_info",),
        "checks": ("evaluation_criteria.nl_assertions",),
        "relevant_documents": ("required_documents",),
    },
    readers={
        "id": lambda value, losses: str(value),
        "question": _scenario,
        "persona": lambda value, losses: as_text(value),
        "expected_tools": _actions,
        "expected_keywords": _told,
        "checks": _assertions,
    },
    spread=("evaluation_criteria",),
    unneeded=("user_scenario", "annotations", "issues"),
    lost=("initial_state", "env_assertions", "reward_basis", "user_tools"),
)
