"""Answer medical questions: search finds answers, a model of pairs says which of them fits.

    python examples/medical_qa.py train QUESTIONS ANSWERS FOLDER [MODEL]    # en, zh or a folder
    python examples/medical_qa.py ask FOLDER [QUESTION …]                   # or lines from a pipe

QUESTIONS   JSON lines with "question", "right" (the name of its answer) and, if there is one, "title"
ANSWERS     lines with a name, a tab and a text

Both may be packed (.gz, .xz, .zst). It finds what others have answered; it is no doctor.
"""

import json
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

import elmokit
from elmokit.search import Document
from elmokit.text import Tokenizer, make_tokenizer, read_lines

FOUND = 10  # answers that search finds, and that are then ordered
WRONG = 2  # wrong answers beside each right one in training: the best ones that search finds
WORDS = 40  # of a question, and of an answer, that the model of pairs reads: the first ones
MOST = 1500  # training questions
SETTINGS = (
    *("head.rnn=64", "head.compare=64", "encoder.place=input"),
    *("training.epochs=3", "training.batch=16", "training.learning_rate=0.002", "training.least_steps=1"),
)


class Asked(NamedTuple):
    """A question, and the name of its answer."""

    text: str
    right: str


class Answer(NamedTuple):
    """An answer that was found, and how well it fits; comparable within one question only."""

    score: float
    id: str
    text: str


def read_questions(path: str | Path) -> list[Asked]:
    """Read JSON lines; a title comes before its question."""
    rows = [json.loads(line) for line in read_lines(Path(path)) if line.strip()]
    return [Asked(" ".join(filter(None, (row.get("title"), row["question"]))), row["right"]) for row in rows]


def read_answers(path: str | Path) -> dict[str, str]:
    """Read names and texts."""
    rows = (line.split("\t", 1) for line in read_lines(Path(path)) if line.strip())
    return {name: text for name, text in rows}


class MedicalAnswers:
    """Answers that can be asked for.

    Args:
        index: of the answers.
        pairs: says whether an answer fits a question.
        weights: of search, of BM25 and of the model of pairs.
    """

    def __init__(
        self, index: elmokit.Index, pairs: elmokit.EntailmentModel, weights: Sequence[float]
    ) -> None:
        self.index, self.pairs, self.weights = index, pairs, torch.tensor(weights)
        self.tokenize = make_tokenizer(pairs.tokenizer)

    @classmethod
    def open(cls, folder: Path) -> "MedicalAnswers":
        """Open what `train` wrote."""
        weights = json.loads((folder / "weights.json").read_text(encoding="utf-8"))
        return cls(
            elmokit.Index.open(folder / "index"), elmokit.EntailmentModel.load(folder / "pairs"), weights
        )

    def ask(self, questions: Sequence[str]) -> list[list[Answer]]:
        """Return the answers to each question, best first."""
        found = []
        for hits, features in self.candidates(questions):
            scores = (features @ self.weights).tolist()
            answers = [
                Answer(score, name, self.index[name].text) for score, name in zip(scores, hits, strict=True)
            ]
            found.append(sorted(answers, reverse=True))
        return found

    def candidates(self, questions: Sequence[str]) -> list[tuple[list[str], torch.Tensor]]:
        """Return for each question the answers that search finds, and three numbers for each, (n, 3)."""
        found = self.index.search_many(questions, FOUND)
        by_words = self.index.search_many(questions, 5 * FOUND, by=["bm25"])
        rows = []
        for question, hits, words in zip(questions, found, by_words, strict=True):
            names = [hit.id for hit in hits]
            bm25 = {hit.id: hit.score for hit in words}
            texts = [
                first_words(text, self.tokenize)
                for text in (question, *(self.index[name].text for name in names))
            ]
            fits = self.pairs.predict([(texts[0], text) for text in texts[1:]])
            scores = [
                [hit.score for hit in hits],
                [bm25.get(name, 0.0) for name in names],
                [log_odds(one.scores["yes"]) for one in fits],
            ]
            best = [max([*map(abs, own), 1e-9]) for own in scores[:2]]
            scores[:2] = [[score / top for score in own] for own, top in zip(scores[:2], best, strict=True)]
            rows.append((names, torch.tensor(scores).T))
        return rows


def train(
    questions: Sequence[Asked], answers: Mapping[str, str], folder: Path, model: str, *, progress: bool = True
) -> MedicalAnswers:
    """Build the index; train the model of pairs on nine tenths of the questions, the weights on the rest."""
    documents = [Document(id=name, text=text) for name, text in answers.items()]
    index = elmokit.Index.build(documents, folder / "index", model=model, overwrite=True, progress=progress)
    held_out = questions[:MOST:10]
    learnt = [one for number, one in enumerate(questions[:MOST]) if number % 10]
    tokenize = make_tokenizer(index.embedder.tokenizer_spec)
    found = index.search_many([one.text for one in learnt], WRONG + 1, by=["bm25"])
    rows = []
    for asked, hits in zip(learnt, found, strict=True):
        wrong = [hit.id for hit in hits if hit.id != asked.right][:WRONG]
        for label, name in (("yes", asked.right), *(("no", name) for name in wrong)):
            texts = (first_words(text, tokenize) for text in (asked.text, answers[name]))
            rows.append(
                json.dumps(dict(zip(("premise", "hypothesis"), texts, strict=True)) | {"label": label})
            )
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch, "pairs.jsonl")
        data.write_text("\n".join(rows), encoding="utf-8")
        elmokit.train(
            "entailment",
            data,
            encoder=model,
            out=folder / "pairs",
            settings=elmokit.task_settings("entailment", SETTINGS),
            overwrite=True,
            progress=progress,
        )
    system = MedicalAnswers(index, elmokit.EntailmentModel.load(folder / "pairs"), [0.0, 0.0, 0.0])
    weights = fit_weights(system.candidates([one.text for one in held_out]), [one.right for one in held_out])
    (folder / "weights.json").write_text(json.dumps(weights), encoding="utf-8")
    return MedicalAnswers.open(folder)


def fit_weights(candidates: Sequence[tuple[list[str], torch.Tensor]], right: Sequence[str]) -> list[float]:
    """Return the weights that make the right ones of the found answers most probable."""
    rows = [
        (found, names.index(one))
        for (names, found), one in zip(candidates, right, strict=True)
        if one in names
    ]
    if not rows:
        raise SystemExit(
            "search finds no right answer to any question that was held out; are the names the same?"
        )
    weights = torch.zeros(rows[0][0].shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=100)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        losses = [-(found @ weights).log_softmax(dim=0)[place] for found, place in rows]
        total = torch.stack(losses).mean() + 1e-3 * weights.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    return [round(weight, 4) for weight in weights.tolist()]


def first_words(text: str, tokenize: Tokenizer) -> str:
    """Return the words that the model of pairs reads."""
    tokens = tokenize(text)[:WORDS]
    return text[: tokens[-1].end] if tokens else ""


def log_odds(probability: float) -> float:
    """Return log p / (1 - p), between -14 and 14."""
    probability = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(probability / (1 - probability))


def main() -> None:
    """Train, or answer."""
    match sys.argv[1:]:
        case ["train", questions, answers, folder, *model]:
            system = train(
                read_questions(questions), read_answers(answers), Path(folder), (model or ["en"])[0]
            )
            print(f"weights of search, BM25 and pairs: {system.weights.tolist()}")
        case ["ask", folder, *questions]:
            system = MedicalAnswers.open(Path(folder))
            for question in questions or map(str.strip, sys.stdin):
                print(question)
                for answer in system.ask([question])[0][:3] if question else []:
                    print(f"  {answer.score:6.2f}  {answer.id}  {answer.text[:200]}")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
