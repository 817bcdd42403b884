"""Semantic roles: who did what to whom, for each predicate.

ELMOKIT_DATA=… python examples/roles.py [ENCODER]      "en" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import RoleLabeller, task_settings, train

TEXTS = [
    "The committee rejected the plan that the mayor had proposed in May.",
    "She never gave her brother the keys because he often lost them.",
]


def main() -> None:
    """Train on a part of the data; print scores, frames as brackets and tables, and a frame asked for."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks", "srl-ewt")
    encoder = f"chars+{sys.argv[1] if len(sys.argv) > 1 else 'en'}"
    settings = task_settings("roles", ["training.share=0.2", "training.epochs=6"])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "roles")
        found = train(
            "roles", data, encoder=encoder, out=out, settings=settings, allow_unseen=True, progress=True
        )
        model = RoleLabeller.load(out)
    values = found.scores.values
    print(f"dev F1 {values['f1']:.3f}; with predicates that the model finds itself {values['found_f1']:.3f}")
    for prediction in model.predict(TEXTS):
        print(f"\n{prediction}\n\n{prediction.table()}")
    tokens = TEXTS[0].removesuffix(".").split()
    (given,) = model.predict([{"tokens": tokens, "predicates": [tokens.index("plan")]}])
    print(f"\nasked for 'plan': {given}")


if __name__ == "__main__":
    main()
