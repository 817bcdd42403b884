"""What ELMo brings to each task, on dev: writes the tables and pictures of docs/measurements/tasks.md.

ELMOKIT_DATA=… python benchmarks/tasks.py [--en MODEL] [--zh MODEL] [--seeds 3] [--only srl-ewt …]

The baseline is that of the paper: static vectors and a character CNN trained with the task. Each run has a
process of its own; an interrupted benchmark goes on where it stopped. What was measured is kept in
benchmarks/results/tasks.json, and not measured again while the model's weights and the settings are the
same. Runs with --set are trials, neither kept nor taken from there.
With --measure baseline, or elmo, that half alone is run, so that two processes can share the work.
For "adapted" the English model first reads the training sentences of a task, without their labels. "shares"
are trainings with a part of the data, shares-srl-ewt those of one row; "page" writes the page alone.
"""

import argparse
import json
import lzma
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adaptation import adapt
from common import RESULTS, data_file, machine, markdown_table
from elmokit.base import settings_from_dict
from elmokit.encoders import open_encoders
from elmokit.tasks import Compared, MeasuredRun, compare, comparison_text, find_task, task_settings
from elmokit.tasks.core import draw_comparison, read_data
from task_pages import KEPT, read_kept, write_page, write_section
from task_rows import CURVES, ROWS, Row
from task_times import TimedTask

COMPARED = "ner-conll2003"  # with BERT
ADAPTED = ("ner-conll2003", "sentiment-sst5")
HALVES = ("baseline", "elmo")


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
        self.halves = [half for half in HALVES if half in arguments.measure]  # in this order
        self.work = Path(arguments.work)
        self.changes = tuple(arguments.set)

    def run(self, name: str, *, share: float = 1.0, bert: str | None = None) -> list[Compared]:
        """The baseline, the same with ELMo, and with BERT if that is given: those that are to be measured."""
        row = ROWS[name]
        label = name if share == 1 else f"{name}-{share}"
        halves = {"baseline": None, "elmo": self.elmo[row.chinese]}
        added = [halves[half] for half in self.halves] + ([] if bert is None else [f"bert:{bert}"])
        results = []
        for model in added:
            facts = self._facts(row, model, share)
            encoder = self._encoder(row, model)
            known = self._known(label, encoder, facts)
            results.append(known or self._measure(label, row, encoder, facts, start=self._start(row, model)))
        return results

    def _start(self, row: Row, model: str | None) -> Path | None:
        """The folder of the model that training starts from: that of another row with the same encoders."""
        if row.start is None:
            return None
        first = ROWS[row.start]
        facts = self._facts(first, model, 1.0)
        self._measure(row.start, first, self._encoder(first, model), facts, seeds=1)
        (folder,) = self._out(row.start, facts).glob("*-seed1")
        return folder

    def run_adapted(self, name: str) -> Compared:
        """With ELMo that has first read the training sentences."""
        row = ROWS[name]
        start = self.elmo[row.chinese]
        facts = self._facts(row, start, 1.0)
        folder = self.work / f"{name}-{facts['fingerprint']}-adapted" / f"{Path(start).name}-adapted"
        encoder = self._encoder(row, str(folder))
        known = self._known(name, encoder, facts)
        if known is not None:
            return known
        dev = None if row.dev is None else self.tasks / row.dev
        formats = find_task(row.task).task_type.formats
        data = read_data(formats, self.tasks / row.data, tokenize=str.split, dev=dev, format=row.format)
        perplexities = adapt(start, data, folder)
        return self._measure(name, row, encoder, facts | {"perplexities": perplexities})

    def _encoder(self, row: Row, model: str | None) -> str:
        """The baseline's encoder, with this model added."""
        baseline = self.baseline[row.chinese] if row.vectors else "words"
        return baseline if model is None else f"{baseline}+{model}"

    def _facts(self, row: Row, model: str | None, share: float) -> dict[str, Any]:
        """What decides a result besides the data: the model's weights (of those it starts from), settings."""
        fingerprint = "" if model is None else open_encoders(model)[0].fingerprint()[:8]
        settings = task_settings(row.task, [*row.changes, *self.changes, f"training.share={share}"])
        return {"fingerprint": fingerprint, "settings": asdict(settings)}

    def _known(self, label: str, encoder: str, facts: dict[str, Any]) -> Compared | None:
        """What was measured before under the same circumstances."""
        known = None if self.changes else read_kept().get(label, {}).get(Compared(encoder, "", []).name)
        if known and facts.items() <= known.items() and len(known["runs"]) >= self.seeds:
            return Compared(encoder, known["metric"], [MeasuredRun(**run) for run in known["runs"]])
        return None

    def _out(self, label: str, facts: dict[str, Any]) -> Path:
        return self.work / "-".join(filter(None, [label, facts["fingerprint"]]))

    def _measure(
        self,
        label: str,
        row: Row,
        encoder: str,
        facts: dict[str, Any],
        *,
        start: Path | None = None,
        seeds: int | None = None,
    ) -> Compared:
        """Train all seeds, and keep what came of it; with `seeds` so many of them, for another row."""
        kind = find_task(row.task).task_type.settings_type
        (found,) = compare(
            row.task,
            self._source(row),
            [encoder],
            out=self._out(label, facts),
            seeds=seeds or self.seeds,
            settings=settings_from_dict(kind, facts["settings"], "settings"),
            dev=None if row.dev is None else self.tasks / row.dev,
            format=row.format,
            text_column=row.text_column,
            label_column=row.label_column,
            tokenizer=row.tokenizer,
            start=start,
            allow_unseen=True,
            resume=True,
            notice=_notice,
        )
        if seeds is None and not self.changes:
            keep(label, found, facts)
        return found

    def _source(self, row: Row) -> Path:
        """The training data: as they are, or several files joined into one."""
        if not row.more:
            return self.tasks / row.data
        articles = []
        for name in (row.data, *row.more):
            with lzma.open(self.tasks / name) as file:
                articles += json.load(file)["data"]
        joined = self.work / f"{Path(row.data).parent.name}-train.json"
        joined.parent.mkdir(parents=True, exist_ok=True)
        joined.write_text(json.dumps({"data": articles}), encoding="utf-8")
        return joined

    def timed(self, encoder: str) -> TimedTask:
        """A twentieth of the named entities, to take times of."""
        return TimedTask(
            *("tagger", self.tasks / COMPARED, encoder, self.work / "timed-cache"),
            changes=self.changes,
            tokenizer="whitespace",
        )

    def epoch_times(self) -> dict[str, float]:
        """An epoch of NER with cached vectors, one that runs the frozen biLM, and one that tunes it."""
        tagger = self.timed(f"{self.baseline[False]}+{self.elmo[False]}")
        return {
            "cached vectors": tagger.epoch(),
            "running the frozen biLM": tagger.epoch(cached=False),
            "tuning the biLM": tagger.epoch("encoder.tune_from=0", cached=False),
        }

    def encoders(self, bert: str) -> list[Compared]:
        """What was measured with each encoder, and times that are taken now: runs may have had company."""
        results = []
        for model in (None, self.elmo[False], f"bert:{bert}"):
            encoder = self._encoder(ROWS[COMPARED], model)
            kept = read_kept()[COMPARED].get(Compared(encoder, "", []).name)
            if kept is not None:
                tagger = self.timed(encoder)
                times = {"training": tagger.epoch(), "use": tagger.use()}
                runs = [MeasuredRun(**run | times) for run in kept["runs"]]
                results.append(Compared(encoder, kept["metric"], runs))
        return results


def _notice(name: str, run: MeasuredRun) -> None:
    print(f"{name}: {100 * run.score:.2f}", flush=True)


def keep(label: str, measured: Compared, facts: dict[str, Any]) -> None:
    """Write down what one encoder brought beside what was measured before."""
    kept = read_kept()
    entry = {**facts, "metric": measured.metric, "runs": [asdict(run) for run in measured.runs]}
    kept.setdefault(label, {})[measured.name] = entry
    KEPT.write_text(json.dumps(kept, indent=1), encoding="utf-8")


def main() -> None:
    """Run what was asked for and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--en", default="en", help="the English model")
    parser.add_argument("--zh", default="zh", help="the Chinese model")
    parser.add_argument("--seeds", type=int, default=3)
    curves = {f"shares-{name}": name for name in CURVES}
    parts = [*ROWS, "adapted", "shares", *curves, "epoch", "bert", "page"]
    parser.add_argument("--only", nargs="+", choices=parts, help="a part of it")
    parser.add_argument("--measure", nargs="+", choices=HALVES, default=HALVES, help="a half of each row")
    parser.add_argument("--bert", help="a folder of a BERT-family model to compare with")
    parser.add_argument("--work", default="out/tasks", help="folder for the runs")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of all runs")
    arguments = parser.parse_args()
    benchmark = Benchmark(arguments)
    wanted = arguments.only or [*ROWS, "adapted", "shares", "epoch"]

    for name in ROWS:
        if name in wanted:
            benchmark.run(name)
    for name in ADAPTED:
        if "adapted" in wanted:
            benchmark.run_adapted(name)
    for part, name in curves.items():
        for share in CURVES[name] if {part, "shares"} & set(wanted) else ():
            benchmark.run(name, share=share)
    write_page(ADAPTED)
    if "epoch" in wanted:
        taken = benchmark.epoch_times()
        cells = [[name, f"{each:.0f}", each / taken["cached vectors"]] for name, each in taken.items()]
        header = ["an epoch on 5 % of CoNLL-2003", "ms per 1,000 tokens", "ratio"]
        write_section("epoch", markdown_table(header, cells))
    if arguments.bert:
        benchmark.run(COMPARED, bert=arguments.bert)
        results = benchmark.encoders(arguments.bert)
        draw_comparison(results, RESULTS / "tasks-encoders.png")
        seeds = ", ".join(str(len(one.runs)) for one in results)
        facts = ", ".join(f"{name} {value}" for name, value in machine().items() if name != "instructions")
        write_section("encoders", f"{comparison_text(results)}\n\nSeeds: {seeds}. {facts}.")


if __name__ == "__main__":
    main()
