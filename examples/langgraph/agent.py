# /// script
# requires-python = ">=3.11"
# dependencies = ["langgraph==1.2.20", "langchain"]
# ///
"""A LangGraph agent, graded with its tool calls as its messages show them.

The model's part is played by a function, so that the example needs no key: put a chat model with its tools in its place.
"""

import sys
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import answerkey

ORDERS = {"1001": "was delivered on May 3", "1002": "is on its way and arrives on May 9"}
POLICIES = {
    "return": "You can return anything within 30 days.",
    "shipping": "Shipping is free from 50 euros, otherwise 4.90.",
}


def order_status(order: str) -> str:
    """Look an order up."""
    return f"Order {order} {ORDERS[order]}."


def search_policies(query: str) -> str:
    """Find what the shop promises."""
    return POLICIES[query]


def model(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Call a tool, or say what it found."""
    last = state["messages"][-1]
    if not isinstance(last, HumanMessage):
        return {"messages": [AIMessage(str(last.content))]}
    asked = str(last.content)
    wanted = [("order_status", {"order": number}) for number in ORDERS if number in asked]
    wanted += [("search_policies", {"query": word}) for word in POLICIES if word in asked.lower()]
    if not wanted:
        return {"messages": [AIMessage("I can help with orders, returns and shipping.")]}
    name, arguments = wanted[0]
    return {"messages": [AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "call-1"}])]}


builder = StateGraph(MessagesState)
builder.add_node("model", model)
builder.add_node("tools", ToolNode([order_status, search_policies]))
builder.add_edge(START, "model")
builder.add_conditional_edges("model", tools_condition)
builder.add_edge("tools", "model")
agent = builder.compile()


def answer(question: str) -> object:
    """The agent as `answerkey run golden.jsonl --target agent.py:answer` asks it."""
    return agent.invoke({"messages": [HumanMessage(question)]})


if __name__ == "__main__":
    golden = Path(__file__).with_name("golden.jsonl")
    run = answerkey.evaluate(golden, target=answer, gates=["score >= 0.85", "tool_usage == 1"])
    print(f"score {run.summary.score:.3f}, grade {run.summary.grade}")
    sys.exit(not run.passed)
