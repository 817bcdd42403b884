"""What ELMo brings to each task, on dev: writes the tables and pictures of docs/results.md.

ELMOKIT_DATA=… python benchmarks/tasks.py [--en MODEL] [--zh MODEL] [--seeds 3] [--only ner-wnut17 …]

The baseline is that of the paper: static vectors and a character CNN trained with the task. Each run has a
process of its own; an interrupted benchmark goes on where it stopped.
"""

import argparse
import json
import re
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from common import RESULTS, data_file, machine, markdown_table
from elmokit.encoders import Encoder, open_encoders
from elmokit.tasks import Settings
from elmokit.tasks.batches import shuffled_batches
from elmokit.tasks.comparison import Compared, Run, compare, comparison_text, draw_comparison
from elmokit.tasks.dataset import read_data
from elmokit.tasks.examples import Task
from elmokit.tasks.model import Tagger
from elmokit.tasks.optimizer import make_optimizer, unfreeze
from elmokit.tasks.pictures import new_figure
from elmokit.tasks.prepare import cache_encoders, make_config
from elmokit.tasks.training import run_epoch
from elmokit.text import TokenizerSpec

PAGE = Path(__file__).parent.parent / "docs" / "results.md"
KEPT = RESULTS / "tasks.json"  # all rows; to be deleted when the models have changed
SHARES = (0.01, 0.1, 1.0)


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        task: which head.
        data: folder (or file) under tasks/.
        score: which score is shown, in percent.
        gain: the aim for what ELMo adds, if that is the aim.
        least: the aim for the score with ELMo, if that is.
        dev, format, tokenizer, changes: see `train`.
        chinese: whether the Chinese model and vectors are to be used.
        vectors: whether the baseline has static vectors beside its characters.
    """

    task: Task
    data: str
    score: str
    gain: float | None = None
    least: float | None = None
    dev: str | None = None
    format: str | None = None
    tokenizer: str = "whitespace"
    changes: tuple[str, ...] = ()
    chinese: bool = False
    vectors: bool = True


ROWS = {
    "ner-conll2003": Row("tagger", "ner-conll2003", "f1", gain=1.5),
    "ner-wnut17": Row("tagger", "ner-wnut17", "f1", gain=2.0),
    "sentiment-sst5": Row(
        "classifier",
        "sentiment-sst5/sentences-train.tsv.xz",
        "accuracy",
        gain=1.5,
        dev="sentiment-sst5/sentences-dev.tsv",
    ),
    "question-trec": Row(
        "classifier", "question-trec/train_5500.label.xz", "accuracy", gain=1.0, format="trec"
    ),
    "intent-snips": Row("intent", "intent-snips", "slot_f1", least=94.0, changes=("head.scheme=BIO",)),
    "pos-ewt": Row("tagger", "pos-ewt", "accuracy", gain=0.5),
    "sentiment-chnsenticorp": Row(
        "classifier",
        "sentiment-chnsenticorp",
        "accuracy",
        gain=3.0,
        tokenizer="characters:zh",
        chinese=True,
        vectors=False,
    ),
    "ner-resume-zh": Row("tagger", "ner-resume-zh", "f1", chinese=True),
}


class Benchmark:
    """Runs rows and remembers where everything is."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        vectors = data_file("vectors/glove-100d-tasks.txt.xz", "GloVe vectors of the tasks' words")
        self.tasks = vectors.parent.parent / "tasks"
        self.baseline = {
            False: f"glove:{vectors}+chars",
            True: f"glove:{vectors.parent}/zh-char-100d.txt.xz+chars",
        }
        self.elmo = {False: arguments.en, True: arguments.zh}
        self.seeds = arguments.seeds
        self.work = Path(arguments.work)
        self.changes = tuple(arguments.set)

    def run(self, name: str, row: Row, *, share: float = 1.0) -> list[Compared]:
        """Baseline, and the same with ELMo."""
        baseline = self.baseline[row.chinese] if row.vectors else "chars"
        changes = (*row.changes, *self.changes, f"training.share={share}")
        return compare(
            row.task,
            self.tasks / row.data,
            [baseline, f"{baseline}+{self.elmo[row.chinese]}"],
            out=self.work / (name if share == 1 else f"{name}-{share}"),
            seeds=self.seeds,
            settings=Settings().changed(changes),
            dev=None if row.dev is None else self.tasks / row.dev,
            format=row.format,
            tokenizer=row.tokenizer,
            allow_unseen=True,
            resume=True,
            notice=_notice,
        )

    def epoch_seconds(self, share: float = 0.05) -> dict[str, float]:
        """An epoch of NER with cached vectors, one that runs the frozen biLM, and one that tunes it."""
        settings = Settings().changed([*self.changes, f"training.share={share}"])
        encoders = open_encoders(f"{self.baseline[False]}+{self.elmo[False]}")
        data = read_data(self.tasks / "ner-conll2003", "tagger", cut=str.split)
        config, data = make_config("tagger", data, settings, TokenizerSpec(name="whitespace"))
        folder = self.work / "epoch-cache"
        cached = cache_encoders(encoders, data, settings, folder, lambda name, total=None: lambda *done: None)

        def seconds(used: list[Encoder], *changes: str) -> float:
            model = Tagger(replace(config, settings=settings.changed(changes)), used)
            unfreeze(model, 1)
            optimizer = make_optimizer(model, settings.training)
            lengths = [len(example.tokens) for example in data.train]
            batches = shuffled_batches(data.train, lengths, settings.training.batch, torch.Generator())
            run_epoch(model, batches[:2], optimizer, 5.0)
            began = time.perf_counter()
            run_epoch(model, batches, optimizer, 5.0)
            return time.perf_counter() - began

        return {
            "cached vectors": seconds(cached),
            "running the frozen biLM": seconds(encoders),
            "tuning the biLM": seconds(encoders, "encoder.tune_from=0"),
        }


def _notice(name: str, run: Run) -> None:
    print(f"{name}: {100 * run.score:.2f}", flush=True)


def summary(name: str, row: Row, measured: list[dict[str, Any]]) -> list[str]:
    """The cells of one row, of what was measured without and with ELMo."""
    cells = []
    means = []
    for one in measured:
        scores = [100 * run["values"][row.score] for run in one["runs"]]
        means.append(statistics.fmean(scores))
        deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
        cells.append(f"{means[-1]:.2f} ± {deviation:.2f}")
    gain = means[1] - means[0]
    aim, met = "–", "–"
    if row.gain is not None:
        aim, met = f"gain ≥ {row.gain:g}", _yes_or_no(gain >= row.gain)
    if row.least is not None:
        aim, met = f"{row.score} ≥ {row.least:g}", _yes_or_no(means[1] >= row.least)
    return [name, row.score, *cells, f"{gain:+.2f}", aim, met]


def _yes_or_no(met: bool) -> str:
    return "yes" if met else "**no**"


def keep(name: str, measured: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Write down a row beside those that were measured before; returns all."""
    kept: dict[str, list[dict[str, Any]]] = (
        json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    )
    kept[name] = measured
    KEPT.write_text(json.dumps(kept, indent=2), encoding="utf-8")
    return kept


def draw_shares(by_share: dict[float, list[Compared]], path: Path) -> None:
    """Score against the share of the training data (Peters et al. 2018, figure 1)."""
    figure = new_figure()
    axes = figure.subplots()
    for place, label in ((0, "baseline"), (1, "with ELMo")):
        scores = [100 * results[place].score for results in by_share.values()]
        deviations = [100 * results[place].deviation for results in by_share.values()]
        shares = [100 * share for share in by_share]
        axes.errorbar(shares, scores, yerr=deviations, marker="o", capsize=3, label=label)
    axes.set(
        xscale="log", xlabel="share of the training data, %", ylabel="dev F1, %", title="NER, CoNLL-2003"
    )
    axes.legend()
    figure.savefig(path, dpi=120)


def write_page(section: str, text: str) -> None:
    """Put a text between the section's marks in the page, whose other words are written by hand."""
    begin, end = f"<!-- {section}: written by benchmarks/tasks.py -->", f"<!-- end of {section} -->"
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page), encoding="utf-8")


def main() -> None:
    """Run what was asked for and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--en", default="en", help="the English model")
    parser.add_argument("--zh", default="zh", help="the Chinese model")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[*ROWS, "shares", "epoch", "bert"], help="a part of it")
    parser.add_argument("--bert", help="a folder of a BERT-family model to compare with")
    parser.add_argument("--work", default="out/tasks", help="folder for the runs")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of all runs")
    arguments = parser.parse_args()
    benchmark = Benchmark(arguments)
    wanted = arguments.only or [*ROWS, "shares", "epoch"]

    kept = {}
    for name, row in ROWS.items():
        if name in wanted:
            results = benchmark.run(name, row)
            kept = keep(name, [one.to_dict() | {"encoder": one.name} for one in results])
    if kept:
        table = [summary(name, row, kept[name]) for name, row in ROWS.items() if name in kept]
        header = ["data", "score", "without ELMo", "with ELMo", "gain", "aim", "met"]
        facts = ", ".join(f"{name} {value}" for name, value in machine().items() if name != "instructions")
        about = f"English model `{arguments.en}`, Chinese `{arguments.zh}`; {arguments.seeds} seeds. {facts}."
        write_page("tasks", f"{markdown_table(header, table)}\n\n{about}")
    if "shares" in wanted:
        row = ROWS["ner-conll2003"]
        by_share = {share: benchmark.run("ner-conll2003", row, share=share) for share in SHARES}
        draw_shares(by_share, RESULTS / "tasks-shares.png")
        cells = [
            [f"{share:.0%}", *(f"{100 * one.score:.2f} ± {100 * one.deviation:.2f}" for one in results)]
            for share, results in by_share.items()
        ]
        write_page("shares", markdown_table(["training data", "without ELMo", "with ELMo"], cells))
    if "epoch" in wanted:
        taken = benchmark.epoch_seconds()
        cells = [[name, seconds, seconds / taken["cached vectors"]] for name, seconds in taken.items()]
        write_page("epoch", markdown_table(["an epoch on 5 % of CoNLL-2003", "seconds", "ratio"], cells))
    if arguments.bert:
        baseline, elmo = benchmark.baseline[False], benchmark.elmo[False]
        encoders = [baseline, f"{baseline}+{elmo}", f"{baseline}+bert:{arguments.bert}"]
        results = compare(
            "tagger", benchmark.tasks / "ner-conll2003", encoders, out=benchmark.work / "ner-conll2003",
            seeds=arguments.seeds, settings=Settings().changed([*benchmark.changes, "training.share=1.0"]),
            tokenizer="whitespace", allow_unseen=True, resume=True, notice=_notice,
        )  # fmt: skip
        draw_comparison(results, RESULTS / "tasks-encoders.png")
        write_page("encoders", comparison_text(results))


if __name__ == "__main__":
    main()
