"""ELMoForManyLangs 0.0.4.post2 as it is, with its own code for models, batches and vectors."""

import json
import logging
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from elmoformanylangs import Embedder
from elmoformanylangs.frontend import Model
from elmoformanylangs.modules.embedding_layer import EmbeddingLayer
from worker import serve

logging.disable(logging.INFO)  # it prints every network that it loads
_WORD_MARKS = ("<oov>", "<bos>", "<eos>", "<pad>")
_CHARACTER_MARKS = ("<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>")


def make(folder: str, network: dict[str, Any], words: list[str], characters: list[str], seed: int) -> None:
    """Write a model of random weights as the system itself writes one."""
    torch.manual_seed(seed)
    word_ids = {symbol: number for number, symbol in enumerate((*_WORD_MARKS, *words))}
    character_ids = {symbol: number for number, symbol in enumerate((*characters, *_CHARACTER_MARKS))}
    sizes = network["token_embedder"]
    word_layer = EmbeddingLayer(sizes["word_dim"], word_ids, fix_emb=False) if sizes["word_dim"] else None
    model = Model(network, word_layer, EmbeddingLayer(sizes["char_dim"], character_ids, fix_emb=False), False)
    for parameter in model.parameters():  # large enough for clips to matter
        if parameter.dim() == 1:
            parameter.data.uniform_(-0.3, 0.3)
        else:
            parameter.data.mul_(1.5)
    target = Path(folder)
    (target / "net.json").write_text(json.dumps(network), encoding="utf-8")
    (target / "config.json").write_text(json.dumps({"config_path": "net.json"}), encoding="utf-8")
    for name, ids in (("word.dic", word_ids), ("char.dic", character_ids)):
        lines = "".join(f"{symbol}\t{number}\n" for symbol, number in ids.items())
        (target / name).write_text(lines, encoding="utf-8")
    torch.save(model.token_embedder.state_dict(), target / "token_embedder.pkl")
    torch.save(model.encoder.state_dict(), target / "encoder.pkl")


@torch.no_grad()
def embed(
    folder: str, sentences: list[list[str]], output_layer: int, out: str, batch_size: int | None = None
) -> None:
    """Write the vectors of each sentence; without `batch_size` as one batch, from a state of zero."""
    random.seed(0)
    vectors = Embedder(folder, batch_size=batch_size or len(sentences)).sents2elmo(sentences, output_layer)
    np.savez(out, *vectors)


serve(make, embed)
