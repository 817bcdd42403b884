"""ELMo or BERT, on equal terms: four models from the same text in the same time, then the same tests for all.

    ELMOKIT_DATA=… python benchmarks/elmo_or_bert.py CORPUS --minutes 120 --work FOLDER

CORPUS is a folder that `elmokit prepare` wrote. An ELMo, biLMs of gated convolutions and of transformer
layers, and a BERT are trained one after another, each for so many minutes of the whole machine, with the
default recipe of its architecture; none is tuned. Then, for each of them and for --others:

* grammar.py (BLiMP; a masked model by its pseudo-log-likelihood), layers.py (parts of speech by layers) and
  senses.py (CoarseWSD-20), whose results lie in benchmarks/results;
* the report of `elmokit compare` on each task of --tasks, frozen encoders, in FOLDER/reports/TASK.

What is interrupted goes on where it stopped when the same command is given again.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import elmokit
from common import RESULTS, data_file
from elmokit.pretraining import ARCHITECTURES, pretraining_summary
from task_rows import ROWS

TASKS = ("ner-conll2003", "sentiment-sst5", "question-trec")
PROBES = ("grammar", "layers", "senses")


def train_models(corpus: str, minutes: float, work: Path, size: str | None) -> dict[str, str]:
    """Train what is not trained yet; return the specs of the models."""
    specs = {}
    for architecture in ARCHITECTURES:
        out = work / architecture
        done = pretraining_summary(out)
        if done is None or (done.progress or 0) < 1:
            begun = done is not None
            elmokit.pretrain(
                None if begun else corpus,
                out=out,
                minutes=minutes,
                architecture=architecture,
                size=size,
                resume=begun,
                progress=True,
            )
        specs[architecture] = f"bert:{out}" if architecture == "bert" else str(out)
    return specs


def probe(specs: list[str]) -> None:
    """Run the tests of single models that have not been run yet."""
    for kind in PROBES:
        for spec in specs:
            model = spec.replace("bert-mean:", "bert:")
            name = Path(model).resolve().name
            if any(RESULTS.glob(f"{kind}-{name}*.json")):
                continue
            script = Path(__file__).with_name(f"{kind}.py")
            done = subprocess.run([sys.executable, str(script), model], check=False)
            if done.returncode:
                print(f"{kind}: {model} cannot be measured so (exit code {done.returncode})", file=sys.stderr)


def report(task: str, specs: list[str], work: Path, seeds: int, shares: list[float]) -> None:
    """Write the report on one task."""
    row = ROWS[task]
    tasks = data_file("vectors/glove-100d-tasks.txt.xz", "GloVe vectors of the tasks' words").parent.parent
    elmokit.compare_report(
        row.task,
        tasks / "tasks" / row.data,
        [f"glove:{tasks}/vectors/glove-100d-tasks.txt.xz", *specs],
        out=work / "runs" / task,
        report=work / "reports" / task,
        shares=shares,
        seeds=seeds,
        settings=elmokit.task_settings(row.task, row.changes),
        dev=None if row.dev is None else tasks / "tasks" / row.dev,
        format=row.format,
        text_column=row.text_column,
        label_column=row.label_column,
        tokenizer=row.tokenizer,
        allow_unseen=True,
        resume=True,
        notice=lambda name, run: print(f"{task}: {name}: {100 * run.score:.2f}", file=sys.stderr),
    )


def main() -> None:
    """Train, test, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("corpus", help="that all are trained on")
    parser.add_argument("--minutes", type=float, default=120, help="of training, for each")
    parser.add_argument("--work", type=Path, required=True, help="folder for models, runs and reports")
    parser.add_argument("--size", help="of all models; by default that of each architecture's recipe")
    parser.add_argument(
        "--others", nargs="*", default=["en"], help="further encoders, such as bert-mean:MINILM"
    )
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=ROWS, help="to report on")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", nargs="*", type=float, default=[0.01, 0.1, 1.0])
    parser.add_argument("--no-probes", action="store_true", help="leave out BLiMP, layers and senses")
    arguments = parser.parse_args()
    specs = [
        *train_models(arguments.corpus, arguments.minutes, arguments.work, arguments.size).values(),
        *arguments.others,
    ]
    if not arguments.no_probes:
        probe(specs)
    for task in arguments.tasks:
        report(task, specs, arguments.work, arguments.seeds, arguments.shares)


if __name__ == "__main__":
    main()
