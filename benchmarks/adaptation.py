"""A model gets used to the text of a task before it is frozen, as in the paper (Peters et al. 2018, A.1)."""

import json
import shutil
from pathlib import Path
from typing import Any

from elmokit.corpus import PrepareSettings
from elmokit.pretraining import pretrain
from elmokit.tasks.core import TaskData
from elmokit.text import TokenizerSpec


def adapt(start: str, data: TaskData[Any], folder: Path) -> list[float]:
    """One pass over the training sentences without their labels; perplexity of dev before and after.

    The model is written to `folder`, and left as it is if it is there.
    """
    noted = folder.with_suffix(".json")
    if not noted.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for part, examples in (("train", data.train), ("dev", data.dev)):
            lines = "".join(" ".join(text) + "\n" for example in examples for text in example.texts)
            folder.with_name(f"{part}.txt").write_text(lines, encoding="utf-8")
        changes = pretrain(
            folder.with_name("train.txt"),
            out=folder,
            preparation=PrepareSettings(
                tokenizer=TokenizerSpec(name="whitespace"),
                split_sentences=False,
                min_tokens=1,
                heldout=[folder.with_name("dev.txt")],
            ),
            recipe="adapt",
            start=start,
            workers=1,
        )
        assert changes[0].before is not None
        found = [changes[0].before.mean, changes[0].after.mean]
        noted.write_text(json.dumps(found), encoding="utf-8")
    perplexities: list[float] = json.loads(noted.read_text(encoding="utf-8"))
    return perplexities
