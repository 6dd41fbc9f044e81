"""A tiny entailment model in ONNX form: a claim is held as far as its words stand in the premise."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors


def write_model(
    folder: Path, words: list[str], *, labels: tuple[str, ...] = ("contradiction", "entailment")
) -> None:
    """Write model.onnx, tokenizer.json and config.json for texts of these words.

    The logit of entailment is 4 · (2 · share of the claim's tokens that also stand in the premise − 1.5).
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {
        "[PAD]": 0,
        "[UNK]": 1,
        "[SEP]": 2,
        **{word: 3 + n for n, word in enumerate(dict.fromkeys(words))},
    }
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A [SEP] $B:1", special_tokens=[("[SEP]", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"id2label": dict(enumerate(labels))}))
    onnx.save(_model(labels.index("entailment"), len(labels)), str(folder / "model.onnx"))


def _model(label: int, many: int) -> onnx.ModelProto:
    # Each row compares every token with every other: claim tokens (type 1) that equal a premise token (type 0).
    direction = np.zeros((1, many), dtype=np.float32)
    direction[0, label] = 1.0
    constants = {
        "one": np.array(1, dtype=np.int64),
        "axis1": np.array([1], dtype=np.int64),
        "axis2": np.array([2], dtype=np.int64),
        "two": np.array(8.0, dtype=np.float32),
        "less": np.array(6.0, dtype=np.float32),
        "direction": direction,
    }
    nodes = [
        helper.make_node("Unsqueeze", ["input_ids", "axis2"], ["rows"]),
        helper.make_node("Unsqueeze", ["input_ids", "axis1"], ["columns"]),
        helper.make_node("Equal", ["rows", "columns"], ["same"]),
        helper.make_node("Sub", ["one", "token_type_ids"], ["premise0"]),
        helper.make_node("Mul", ["premise0", "attention_mask"], ["premise"]),
        helper.make_node("Unsqueeze", ["premise", "axis1"], ["premise_columns"]),
        helper.make_node("Cast", ["same"], ["same_number"], to=TensorProto.INT64),
        helper.make_node("Mul", ["same_number", "premise_columns"], ["hits"]),
        helper.make_node("ReduceMax", ["hits", "axis2"], ["found"], keepdims=0),
        helper.make_node("Mul", ["token_type_ids", "attention_mask"], ["claim"]),
        helper.make_node("Mul", ["found", "claim"], ["found_claim"]),
        helper.make_node("ReduceSum", ["found_claim", "axis1"], ["held"], keepdims=1),
        helper.make_node("ReduceSum", ["claim", "axis1"], ["all"], keepdims=1),
        helper.make_node("Cast", ["held"], ["held_float"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["all"], ["all_float"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["held_float", "all_float"], ["share"]),
        helper.make_node("Mul", ["share", "two"], ["doubled"]),
        helper.make_node("Sub", ["doubled", "less"], ["logit"]),
        helper.make_node("MatMul", ["logit", "direction"], ["logits"]),
    ]
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", many])
    kept = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, [output], initializer=kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
