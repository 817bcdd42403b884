"""Describe a model as plain data."""

from typing import Any

from elmokit.formats import ModelBundle
from elmokit.kernels import engine_name, supported


def model_info(bundle: ModelBundle) -> dict[str, Any]:
    """Describe a model.

    Args:
        bundle: The model, from `elmokit.load_model`.

    Returns:
        Data for JSON: source, tokenizer, sizes of vectors, vocabulary and softmax (None if there is none),
        settings, the shape of each weight, and the precisions that this machine supports natively,
        fastest last, with the engine that computes each: an instruction set of the native kernel, or torch.
    """
    weights = [
        {"name": name, "shape": list(weight.shape), "parameters": weight.numel()}
        for name, weight in bundle.model.named_parameters()
    ]
    config = bundle.model.config
    return {
        "source": bundle.source,
        "layers": config.num_outputs,
        "dim": config.output_dim,
        "parameters": sum(weight["parameters"] for weight in weights),
        "tokenizer": bundle.tokenizer.to_dict(),
        "vocabulary": None if bundle.vocabulary is None else len(bundle.vocabulary),
        "softmax": None if bundle.softmax is None else bundle.softmax.num_words,
        "config": config.to_dict(),
        "weights": weights,
        "precisions": {precision: engine_name(precision) for precision in supported()},
    }
