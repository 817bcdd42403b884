"""Medical questions: the right answer among all answers of a part, by BM25, by search, and ordered by pairs.

    ELMOKIT_DATA=… python benchmarks/medical_qa.py [medquad] [zh-internal] [--train 1500] [--dev 200]

The example examples/medical_qa.py learns from the first questions of train (a tenth of them for the weights
alone) and is asked every n-th question of dev, among all answers of dev. Writes results/medical_qa-NAME.json.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import elmokit
from common import RESULTS, data_file, machine, markdown_table, percent
from elmokit.search import Document

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import medical_qa as example

MODELS = {"medquad": "en", "zh-internal": "zh"}
_SOURCE = "questions as JSON lines and answers as TSV, see the example"


def part(name: str, which: str) -> tuple[list[example.Asked], dict[str, str]]:
    """The questions and answers of a part; dev's may be packed or not."""
    packed = ".xz" if which == "train" else ""
    answers = packed or (".xz" if name == "medquad" else "")
    folder = f"tasks/qa-medical/{name}"
    questions = example.read_questions(data_file(f"{folder}/{which}.jsonl{packed}", _SOURCE))
    return questions, example.read_answers(data_file(f"{folder}/answers-{which}.tsv{answers}", _SOURCE))


def scores(asked: Sequence[example.Asked], found: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Accuracy at 1 and the mean reciprocal rank, 0 for an answer that is not found."""
    ranks = [
        names.index(one.right) + 1 if one.right in names else None
        for one, names in zip(asked, found, strict=True)
    ]
    count = max(1, len(asked))
    return percent(sum(rank == 1 for rank in ranks) / count), percent(
        sum(1 / rank for rank in ranks if rank) / count
    )


def measure(name: str, train: int, dev: int, folder: Path) -> dict[str, object]:
    """Train on the first questions and ask some of dev."""
    begin = time.process_time()
    questions, answers = part(name, "train")
    questions = questions[:train]
    example.MOST = train
    learnt = example.train(
        questions, {one.right: answers[one.right] for one in questions}, folder, MODELS[name]
    )
    training = time.process_time() - begin
    asked, known = part(name, "dev")
    asked = asked[:: max(1, len(asked) // dev)][:dev]
    documents = [Document(id=key, text=text) for key, text in known.items()]
    with elmokit.Index.build(documents, model=MODELS[name]) as index:
        system = example.MedicalAnswers(index, learnt.pairs, learnt.weights.tolist())
        texts = [one.text for one in asked]
        candidates = system.candidates(texts)

        def ordered(number: Callable[[list[float]], float]) -> list[list[str]]:
            return [
                [names[row] for row in sorted(range(len(names)), key=lambda row: -number(own[row]))]
                for names, features in candidates
                for own in [features.tolist()]
            ]

        weights = learnt.weights.tolist()
        found = {
            "BM25": [
                [hit.id for hit in hits] for hits in index.search_many(texts, example.FOUND, by=["bm25"])
            ],
            "search (BM25, passages, words)": [names for names, _ in candidates],
            "the model of pairs alone, over these": ordered(lambda own: own[2]),
            "search, BM25 and pairs, weighted": ordered(
                lambda own: sum(w * x for w, x in zip(weights, own, strict=True))
            ),
        }
    return {
        "questions of train": len(questions),
        "questions of dev": len(asked),
        "answers of dev": len(known),
        "weights of search, BM25, pairs": weights,
        "seconds of training": round(training, 1),
        "scores": {
            way: dict(zip(("accuracy@1", "MRR"), scores(asked, names), strict=True))
            for way, names in found.items()
        },
    }


def main() -> None:
    """Measure each collection, print the table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], default=list(MODELS))
    parser.add_argument("--train", type=int, default=1500)
    parser.add_argument("--dev", type=int, default=200)
    arguments = parser.parse_args()
    for name in arguments.names:
        with tempfile.TemporaryDirectory() as scratch:
            result = measure(name, arguments.train, arguments.dev, Path(scratch))
        rows = [(way, *values.values()) for way, values in result["scores"].items()]
        print(f"{name}: {result['questions of dev']} questions, {result['answers of dev']} answers")
        print(markdown_table(["", "accuracy@1", "MRR"], rows), flush=True)
        whole = json.dumps({**result, "machine": machine()}, indent=2, ensure_ascii=False)
        (RESULTS / f"medical_qa-{name}.json").write_text(whole + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
