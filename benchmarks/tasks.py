"""What ELMo brings to each task, on dev: writes the tables and pictures of docs/measurements/tasks.md.

ELMOKIT_DATA=… python benchmarks/tasks.py [--en MODEL] [--zh MODEL] [--seeds 3] [--only ner-wnut17 …]

The baseline is that of the paper: static vectors and a character CNN trained with the task. Each run has a
process of its own; an interrupted benchmark goes on where it stopped. What was measured is kept in
benchmarks/results/tasks.json, and not measured again while the model's weights and the settings are the
same. Runs with --set are trials, neither kept nor taken from there.
With --measure baseline, or elmo, that half alone is run, so that two processes can share the work.
For "adapted" the English model first reads the training sentences of a task, without their labels.
"""

import argparse
import json
import lzma
import re
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adaptation import adapt
from common import RESULTS, data_file, machine, markdown_table
from elmokit.base import COLOURS, drawing, settings_from_dict
from elmokit.encoders import open_encoders
from elmokit.tasks import Compared, MeasuredRun, compare, comparison_text, find_task, task_settings
from elmokit.tasks.core import draw_comparison, read_data
from task_times import TimedTagger

PAGE = Path(__file__).parent.parent / "docs" / "measurements" / "tasks.md"
KEPT = RESULTS / "tasks.json"
# row → encoder → its runs, the model's fingerprint and the settings
Kept = dict[str, dict[str, dict[str, Any]]]
SHARES = (0.01, 0.1, 1.0)
COMPARED = "ner-conll2003"  # with BERT, and with less training data
ADAPTED = ("ner-conll2003", "sentiment-sst5")
HALVES = ("baseline", "elmo")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        task: which head.
        data: folder (or file) under tasks/.
        score: which score is shown, in percent.
        gain: the aim for what ELMo adds, if that is the aim.
        least: the aim for the score with ELMo, if that is.
        dev, format, tokenizer, text_column, label_column, changes: see `train`.
        more: further training files in SQuAD's format, which are joined with the first.
        chinese: whether the Chinese model and vectors are to be used.
        vectors: whether the baseline has static vectors and a character CNN; else a vector of each token.
    """

    task: str
    data: str
    score: str
    gain: float | None = None
    least: float | None = None
    dev: str | None = None
    format: str | None = None
    tokenizer: str = "whitespace"
    text_column: str | None = None
    label_column: str | None = None
    more: tuple[str, ...] = ()
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
    "nli-snli": Row("entailment", "nli-snli", "accuracy", gain=1.5, tokenizer="rules:en"),
    "nli-sick": Row(
        *("entailment", "nli-sick", "accuracy"),
        gain=1.5,
        tokenizer="rules:en",
        text_column="2,3",
        label_column="1",
    ),
    "nli-zh": Row(
        "entailment", "nli-zh", "accuracy", gain=1.5, tokenizer="characters:zh", chinese=True, vectors=False
    ),
    "pairs-afqmc-zh": Row(
        "entailment", "pairs-afqmc-zh", "accuracy", tokenizer="characters:zh", chinese=True, vectors=False
    ),
    "glue-mrpc": Row("entailment", "glue-mrpc", "accuracy", tokenizer="rules:en"),
    "glue-rte": Row("entailment", "glue-rte", "accuracy", tokenizer="rules:en"),
    "sts-b": Row(
        *("entailment", "sts-b/sts-train.csv.xz", "spearman"),
        dev="sts-b/sts-dev.csv",
        format="sts",
        tokenizer="rules:en",
        changes=("head.regression=true",),
    ),
    "qa-squad1": Row(
        *("reading", "qa-squad1/squad1.1-partial.json.xz", "f1"),
        gain=4.0,
        more=tuple(
            f"qa-squad1/squadshifts-{name}_v1.0.json.xz" for name in ("new_wiki", "reddit", "amazon_reviews")
        ),
        dev="qa-squad1/xquad.en.json.xz",
        tokenizer="rules:en",
    ),
    "qa-cmrc2018": Row(
        "reading", "qa-cmrc2018", "f1", gain=3.0, tokenizer="characters:zh", chinese=True, vectors=False
    ),
    "srl-ewt": Row("roles", "srl-ewt", "f1", gain=2.5, tokenizer="rules:en"),
    "coref-gum": Row("coreference", "coref-gum", "conll_f1", gain=2.0, tokenizer="rules:en"),
    # A tenth of the 100 novels is held out, always the same ten.
    "coref-litbank": Row(
        "coreference", "coref-litbank/litbank-coref.conll.xz", "conll_f1", gain=2.0, tokenizer="rules:en"
    ),
    "coref-gap": Row(
        *("coreference", "coref-gap/gap-development.tsv.xz", "gap_f1"),
        least=70.6,
        dev="coref-gap/gap-validation.tsv",
        tokenizer="rules:en",
        changes=("training.batch=8",),
    ),
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
            results.append(self._known(label, encoder, facts) or self._measure(label, row, encoder, facts))
        return results

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

    def _measure(self, label: str, row: Row, encoder: str, facts: dict[str, Any]) -> Compared:
        """Train all seeds, and keep what came of it."""
        kind = find_task(row.task).task_type.settings_type
        (found,) = compare(
            row.task,
            self._source(row),
            [encoder],
            out=self.work / "-".join(filter(None, [label, facts["fingerprint"]])),
            seeds=self.seeds,
            settings=settings_from_dict(kind, facts["settings"], "settings"),
            dev=None if row.dev is None else self.tasks / row.dev,
            format=row.format,
            text_column=row.text_column,
            label_column=row.label_column,
            tokenizer=row.tokenizer,
            allow_unseen=True,
            resume=True,
            notice=_notice,
        )
        if not self.changes:
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

    def timed(self, encoder: str) -> TimedTagger:
        """A twentieth of the named entities, to take times of."""
        return TimedTagger(self.tasks / COMPARED, encoder, self.work / "timed-cache", changes=self.changes)

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


def without_and_with(kept: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Of what was measured for a row, the baseline and the same with ELMo, as far as they are there."""
    halves = {
        bool(one["fingerprint"]): one
        for name, one in kept.items()
        if "bert:" not in name and not name.endswith("-adapted")
    }
    return [halves[half] for half in sorted(halves)]


def adapted_cells(kept: Kept) -> list[list[str]]:
    """A line for each row with an adapted model: perplexities, the baseline, the scores, the gain."""
    table = []
    for name in ADAPTED:
        baseline = without_and_with(kept.get(name, {}))[:1]
        for one in (one for encoder, one in kept.get(name, {}).items() if encoder.endswith("-adapted")):
            _, score, *cells, gain, aim, met, seeds = summary(name, [*baseline, one])
            before, after = one["perplexities"]
            table.append([name, f"{before:.0f} → {after:.0f}", score, *cells, gain, aim, met, seeds])
    return table


def summary(name: str, measured: list[dict[str, Any]]) -> list[str]:
    """The cells of one row, of what was measured without and with ELMo."""
    row = ROWS[name]
    cells = []
    means = []
    for one in measured:
        scores = [100 * run["values"][row.score] for run in one["runs"]]
        means.append(statistics.fmean(scores))
        deviation = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
        cells.append(f"{means[-1]:.2f}{deviation}")
    gain = means[1] - means[0]
    aim, met = "–", "–"
    if row.gain is not None:
        aim, met = f"gain ≥ {row.gain:g}", _yes_or_no(gain >= row.gain)
    if row.least is not None:
        aim, met = f"{row.score} ≥ {row.least:g}", _yes_or_no(means[1] >= row.least)
    seeds = min(len(one["runs"]) for one in measured)
    return [name, row.score, *cells, f"{gain:+.2f}", aim, met, str(seeds)]


def _yes_or_no(met: bool) -> str:
    return "yes" if met else "**no**"


def read_kept() -> Kept:
    """All that was measured."""
    if not KEPT.exists():
        return {}
    kept: Kept = json.loads(KEPT.read_text(encoding="utf-8"))
    return kept


def keep(label: str, measured: Compared, facts: dict[str, Any]) -> None:
    """Write down what one encoder brought beside what was measured before."""
    kept = read_kept()
    entry = {**facts, "metric": measured.metric, "runs": [asdict(run) for run in measured.runs]}
    kept.setdefault(label, {})[measured.name] = entry
    KEPT.write_text(json.dumps(kept, indent=1), encoding="utf-8")


def draw_shares(by_share: dict[float, list[Compared]], path: Path) -> None:
    """Score against the share of the training data (Peters et al. 2018, figure 1)."""
    shares = [100 * share for share in by_share]
    with drawing(path, width=6, height=4) as figure:
        axes = figure.subplots()
        for place, label in ((0, "baseline"), (1, "with ELMo")):
            scores = [100 * results[place].score for results in by_share.values()]
            deviations = [100 * (results[place].deviation or 0) for results in by_share.values()]
            style = {"color": COLOURS[place], "marker": "o", "capsize": 3}
            axes.errorbar(shares, scores, yerr=deviations, label=label, **style)
        axes.set(xscale="log", xlabel="share of the training data, %", ylabel="dev F1, %")
        axes.set_title("NER, CoNLL-2003")
        axes.set_xticks(shares, [f"{share:g}" for share in shares])
        axes.legend(loc="lower right")


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
    parser.add_argument(
        "--only", nargs="+", choices=[*ROWS, "shares", "epoch", "bert", "adapted"], help="a part of it"
    )
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
    kept = read_kept()
    measured = {name: without_and_with(kept.get(name, {})) for name in ROWS}
    table = [summary(name, both) for name, both in measured.items() if len(both) == len(HALVES)]
    header = ["data", "score", "without ELMo", "with ELMo", "gain", "aim", "met", "seeds"]
    write_page("tasks", markdown_table(header, table))
    columns = [header[0], "perplexity of dev", *header[1:3], "with ELMo, adapted", *header[4:]]
    write_page("adapted", markdown_table(columns, adapted_cells(kept)))
    by_share = {share: benchmark.run(COMPARED, share=share) for share in SHARES if "shares" in wanted}
    if by_share and len(benchmark.halves) == len(HALVES):
        draw_shares(by_share, RESULTS / "tasks-shares.png")
        cells = [
            [f"{share:.0%}", *(one.score_text for one in results)] for share, results in by_share.items()
        ]
        write_page("shares", markdown_table(["training data", "without ELMo", "with ELMo"], cells))
    if "epoch" in wanted:
        taken = benchmark.epoch_times()
        cells = [[name, f"{each:.0f}", each / taken["cached vectors"]] for name, each in taken.items()]
        header = ["an epoch on 5 % of CoNLL-2003", "ms per 1,000 tokens", "ratio"]
        write_page("epoch", markdown_table(header, cells))
    if arguments.bert:
        benchmark.run(COMPARED, bert=arguments.bert)
        results = benchmark.encoders(arguments.bert)
        draw_comparison(results, RESULTS / "tasks-encoders.png")
        seeds = ", ".join(str(len(one.runs)) for one in results)
        facts = ", ".join(f"{name} {value}" for name, value in machine().items() if name != "instructions")
        write_page("encoders", f"{comparison_text(results)}\n\nSeeds: {seeds}. {facts}.")


if __name__ == "__main__":
    main()
