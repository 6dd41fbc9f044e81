"""The trees that scikit-learn fitted, as `answerkey.text.patterns` stores them."""

from typing import Any

__all__ = ["export_trees"]

Node = tuple[int, float, int, int, float]


def export_trees(model: Any) -> tuple[float, list[list[Node]]]:
    """The log-odds before any tree, and the nodes of each tree, of a fitted HistGradientBoostingClassifier."""
    trees = []
    for (predictor,) in model._predictors:
        nodes: list[Node] = []
        for node in predictor.nodes:
            if node["is_leaf"]:
                nodes.append((-1, 0.0, 0, 0, round(float(node["value"]), 4)))
            else:
                threshold = round(float(node["num_threshold"]), 4)
                nodes.append(
                    (int(node["feature_idx"]), threshold, int(node["left"]), int(node["right"]), 0.0)
                )
        trees.append(nodes)
    return round(float(model._baseline_prediction[0, 0]), 4), trees
