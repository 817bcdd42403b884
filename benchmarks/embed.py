"""How fast elmokit embeds, beside AllenNLP 2.10.1 and MiniLM-L6, in one run on this machine.

    ELMOKIT_DATA=… python benchmarks/embed.py            # a quarter of an hour on two free cores
    ELMOKIT_DATA=… python benchmarks/embed.py --quick    # small shape, few sentences, nothing written
    ELMOKIT_DATA=… python benchmarks/embed.py --linear 1000000    # also cost against tokens, with a picture

Every system runs in a process of its own; all of a shape embed the same sentences of WikiText-2 (weights are
random, MiniLM's are its own). First each is tried at several batch sizes; then rounds go over all systems in
turn, each at its best two sizes, with the peak of the matrix products measured in every round. Figures are
medians over rounds at the better size, ratios and shares those of the rounds' own ratios and shares. AllenNLP
takes batches as they are given; a second row hands it sentences sorted by length, which spares it much
padding. Results go to `results/embed.md` and `.json`.

What is counted: tokens are words, without `<S>` and `</S>`. Each round of elmokit starts with an empty
table of words, so the token encoder's time is in it. The arithmetic behind "share of peak" is that of the
LSTMs for every position (`<S>` and `</S>` too), and of highways and projection for every distinct word, as
elmokit runs them; convolutions are not counted, though their time is. AllenNLP gets the same count: the
useful work. Processor time adds up all threads; where other programs run too it says more than the clock
(set OMP_WAIT_POLICY=PASSIVE then, or threads that wait count as busy).
"""

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from common import (
    SHAPES,
    gemm_peaks,
    machine,
    markdown_table,
    random_model,
    wikitext_sentences,
    write_hdf5,
)
from elmokit.kernels.precision import supported
from elmokit.model import BiLMConfig, CharCNNConfig
from peers import Peer

RESULTS = Path(__file__).parent / "results"
# Of the small shape more: on a short text its time is mostly that of words seen for the first time.
SENTENCES = {"original": 256, "small": 1024}
SINGLES = 20  # sentences that are embedded one by one in each round; they come after the text of the round
ALLENNLP, ALLENNLP_SORTED = "AllenNLP 2.10.1", "AllenNLP, sorted for it"
Sentences = list[list[str]]
Peaks = dict[str, dict[str, float]]


@dataclass
class System:
    """One row of the table.

    Attributes:
        name, shape, precision: what it is; shape "" is MiniLM.
        worker, model: which of the peers runs it, and what it is to load.
        batches: the sizes to try: sentences, or tokens for elmokit.
        text: what it embeds.
        sort: whether we hand it the sentences sorted by length.
        found: for each of the best sizes, tokens a second of each round, by the clock and by processor time.
        singles: seconds of single sentences.
        megabytes: the peak of its process over the rounds.
        peer: its process.
    """

    name: str
    shape: str
    precision: str
    worker: str
    model: dict[str, str]
    batches: Sequence[int]
    text: Sentences
    sort: bool = False
    found: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    singles: list[float] = field(default_factory=list)
    megabytes: float = 0.0
    peer: Peer = field(init=False)

    @property
    def ours(self) -> bool:
        """Whether it is elmokit."""
        return self.worker == "elmokit"

    @property
    def title(self) -> str:
        """Name, precision and shape."""
        return " ".join(part for part in (self.name, self.precision, self.shape) if part)

    @property
    def batch(self) -> int:
        """The best size over the rounds."""
        return max(self.found, key=lambda batch: median(rate for rate, _ in self.found[batch]))

    @property
    def rates(self) -> list[float]:
        """Tokens a second of each round at the best size."""
        return [rate for rate, _ in self.found[self.batch]]

    @property
    def cpu_rates(self) -> list[float]:
        """The same by processor time."""
        return [rate for _, rate in self.found[self.batch]]

    def start(self, stack: ExitStack) -> None:
        """Start its process, which `stack` ends."""
        self.peer = stack.enter_context(Peer(self.worker))
        self.peer.ask("load", **self.model)

    def rate(self, batch: int, most: int | None = None) -> tuple[float, float]:
        """Tokens a second over its text (or the first sentences), by the clock and by processor time."""
        sentences = self.text[:most]
        if self.sort:
            sentences = sorted(sentences, key=len, reverse=True)
        answer = self.peer.ask("embed", sentences=sentences, batch=batch)
        return num_tokens(sentences) / sum(answer["seconds"]), num_tokens(sentences) / answer["cpu_seconds"]

    def try_batches(self) -> None:
        """Try the sizes upwards, small ones on fewer sentences, until they grow worse; the best two go on."""
        rates: dict[int, float] = {}
        with ExitStack() as stack:
            self.start(stack)
            for batch in self.batches:
                few = None if self.ours else max(batch, 8 if batch == 1 else 64)
                rates[batch], _ = self.rate(batch, few)
                print(f"  {self.title}, batch {batch}: {rates[batch]:.0f} tokens/s", flush=True)
                if rates[batch] < 0.7 * max(rates.values()):
                    break
        self.found = {batch: [] for batch in sorted(rates, key=lambda batch: -rates[batch])[:2]}

    def run_round(self, singles: Sentences) -> None:
        """Embed all sentences at the best two sizes, then some one by one."""
        for batch, rates in self.found.items():
            rates.append(self.rate(batch))
            print(f"  {self.title}, batch {batch}: {rates[-1][0]:.0f} tokens/s", flush=True)
        self.megabytes = self.peer.ask("peak_megabytes")["megabytes"]
        self.singles += self.peer.ask("single", sentences=singles)["seconds"]


def num_tokens(sentences: Sentences) -> int:
    """Words of all sentences."""
    return sum(map(len, sentences))


def work_gflop(config: BiLMConfig, sentences: Sentences) -> float:
    """The arithmetic that the text needs, as the module's docstring counts it, in 10⁹ additions and products.

    An LSTM layer of one direction: inputs to gates 4N · P, state to gates 4N · P, projection N · P.
    A highway: gate and transform, F · F each. The projection after them: F · P.
    """
    cell, dim, encoder = config.cell_dim, config.projection_dim, config.encoder
    assert isinstance(encoder, CharCNNConfig)
    position = config.num_layers * 2 * (4 * cell * dim + 4 * cell * dim + cell * dim)
    filters = encoder.num_filters
    word = encoder.num_highway * 2 * filters * filters + filters * dim
    positions = num_tokens(sentences) + 2 * len(sentences)
    words = len({token for sentence in sentences for token in sentence}) + 2
    return 2e-9 * (position * positions + word * words)


def all_systems(texts: dict[str, Sentences], folder: Path) -> list[System]:
    """Write the models and name what is to be measured: each shape on its text, MiniLM on the last one."""
    systems = []
    for shape, text in texts.items():
        batches = [batch for batch in (1, 32, 64, 128, 256) if batch <= len(text)]
        files = write_hdf5(random_model(SHAPES[shape]), folder / shape)
        for precision in supported():
            model = {**files, "precision": precision}
            systems.append(
                System("elmokit", shape, precision, "elmokit", model, (1024, 2048, 4096, 8192), text)
            )
        for name, sort in ((ALLENNLP, False), (ALLENNLP_SORTED, True)):
            systems.append(System(name, shape, "float32", "allennlp", files, batches[sort:], text, sort=sort))
    systems.append(
        System("MiniLM-L6, sorted for it", "", "float32", "minilm", {}, (8, 16, 32, 64), text, sort=True)
    )
    return systems


def run_rounds(systems: list[System], singles: Sentences, repeats: int) -> list[Peaks]:
    """Go over all systems in turn, forth and back; returns the peaks of the matrix products in each round."""
    peaks = []
    for number in range(repeats):
        print(f"round {number + 1}", flush=True)
        peaks.append(gemm_peaks())
        for system in systems if number % 2 == 0 else reversed(systems):
            system.run_round(singles[number * SINGLES : (number + 1) * SINGLES])
    return peaks


def summarise(systems: list[System], peaks: list[Peaks]) -> list[dict[str, Any]]:
    """One record for each system."""
    records = []
    for system in systems:
        rivals = {rival.name: rival for rival in systems if rival.shape == system.shape and not rival.ours}
        tokens = num_tokens(system.text)
        gflop = work_gflop(SHAPES[system.shape], system.text) / tokens if system.shape else 0.0
        shares = [
            rate * gflop / max(peak[system.precision].values())
            for rate, peak in zip(system.rates, peaks, strict=True)
        ]
        records.append(
            {
                "system": system.name,
                "shape": system.shape,
                "precision": system.precision,
                "tokens": tokens,
                "batch": f"{system.batch} {'tokens' if system.ours else 'sentences'}",
                "tokens/s": round(median(system.rates)),
                **_ratios(system, rivals),
                "÷ MiniLM": _ratio(system.rates, systems[-1].rates),
                "share of peak": median(shares) if system.shape else None,
                "one sentence p50, ms": 1e3 * median(system.singles),
                "p95, ms": 1e3 * quantiles(system.singles, n=20)[-1],
                "peak memory, MB": round(system.megabytes),
                "rounds": {"tokens/s": system.rates, "tokens per CPU-second": system.cpu_rates},
            }
        )
    return records


def _ratios(system: System, rivals: dict[str, System]) -> dict[str, float | None]:
    """How many times as fast as AllenNLP, by the clock and by processor time; nothing for MiniLM."""
    if not system.shape:
        return dict.fromkeys(("÷ AllenNLP", "… by processor time", "÷ AllenNLP sorted"))
    plain, by_length = rivals[ALLENNLP], rivals[ALLENNLP_SORTED]
    return {
        "÷ AllenNLP": _ratio(system.rates, plain.rates),
        "… by processor time": _ratio(system.cpu_rates, plain.cpu_rates),
        "÷ AllenNLP sorted": _ratio(system.rates, by_length.rates),
    }


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def measure_linear(systems: list[System], folder: Path, most: int) -> list[dict[str, float]]:
    """Seconds and peak memory of the small shape in float32 for 1,000, 10,000, … tokens."""
    system = next(s for s in systems if s.ours and s.shape == "small" and s.precision == "float32")
    text = folder / "train.txt"
    with text.open("w", encoding="utf-8") as file:
        written = 0
        for sentence in wikitext_sentences("train"):
            file.write(" ".join(sentence) + "\n")
            written += len(sentence)
            if written >= most:
                break
    points = []
    tokens = 1000
    while tokens <= min(most, written):
        answer = system.peer.ask("stream", path=str(text), num_tokens=tokens, batch=system.batch)
        points.append({"tokens": tokens, "seconds": answer["seconds"][0], "megabytes": answer["megabytes"]})
        print(f"  {tokens:,} tokens: {points[-1]['seconds']:.2f} s", flush=True)
        tokens *= 10
    return points


def draw(points: list[dict[str, float]], path: Path) -> None:
    """Seconds and memory against tokens, as a picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    cost, memory = figure.subplots(1, 2)
    tokens = [point["tokens"] for point in points]
    cost.loglog(tokens, [point["seconds"] for point in points], "o-", label="measured")
    last = points[-1]["seconds"] / tokens[-1]
    cost.loglog(tokens, [last * count for count in tokens], "k:", label="linear")
    cost.set(xlabel="tokens", ylabel="seconds")
    cost.legend()
    memory.semilogx(tokens, [point["megabytes"] for point in points], "o-")
    memory.set(xlabel="tokens", ylabel="peak memory, MB", ylim=(0, None))
    figure.suptitle("elmokit, small shape, random weights")
    figure.savefig(path, dpi=150)


def as_markdown(result: dict[str, Any]) -> str:
    """The page of results."""
    records, peaks = result["systems"], result["peaks"]
    columns = [name for name in records[0] if name != "rounds"]
    best = {
        (precision, name): max(peak[precision][name] for peak in peaks)
        for precision, found in peaks[0].items()
        for name in found
    }
    parts = [
        "# Embedding speed",
        "Made by `python benchmarks/embed.py`: "
        + ", ".join(
            f"{count:,} sentences for the {shape} shape" for shape, count in result["sentences"].items()
        )
        + f" of WikiText-2, random weights, {len(peaks)} interleaved rounds, medians. How things are counted "
        "stands at the head of that file. The “÷” columns are ratios of tokens/s within a round.",
        markdown_table(["machine", ""], result["machine"].items()),
        markdown_table(
            ["products", "operator", "best GFLOP/s"], ([*key, f"{value:.1f}"] for key, value in best.items())
        ),
        markdown_table(columns, ([_shown(name, record[name]) for name in columns] for record in records)),
    ]
    return "\n\n".join(parts) + "\n"


def linear_page(points: list[dict[str, float]]) -> str:
    """Cost against tokens, as a page of its own: it is not measured in every run."""
    rows = ([f"{p['tokens']:,}", p["seconds"], f"{p['megabytes']:.0f}"] for p in points)
    return (
        "# Cost against tokens\n\n"
        "elmokit, small shape, float32: `python benchmarks/embed.py --linear 1000000`.\n\n"
        "![seconds and memory against tokens](embed-linear.png)\n\n"
        + markdown_table(["tokens", "seconds", "peak memory, MB"], rows)
        + "\n"
    )


def _shown(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return (
            f"{value:.0%}" if name.startswith("share") else f"{value:.1f}" if "ms" in name else f"{value:.2f}"
        )
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--sentences", type=int, help="how many (default 256; 1,024 for the small shape)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--quick", action="store_true", help="small shape, 64 sentences, one round; nothing is written"
    )
    parser.add_argument(
        "--linear", type=int, default=0, metavar="TOKENS", help="cost from 1,000 up to so many"
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.shapes, arguments.sentences, arguments.repeats = ["small"], 64, 1
    if arguments.linear and "small" not in arguments.shapes:
        parser.error("--linear measures the small shape, which --shapes leaves out")
    counts = {shape: arguments.sentences or SENTENCES[shape] for shape in arguments.shapes}
    sentences = list(islice(wikitext_sentences(), max(counts.values()) + SINGLES * arguments.repeats))
    texts = {shape: sentences[:count] for shape, count in counts.items()}
    singles = sentences[max(counts.values()) :]
    began = time.monotonic()
    result: dict[str, Any] = {"machine": machine(), "sentences": counts}
    with TemporaryDirectory() as temporary, ExitStack() as stack:
        systems = all_systems(texts, Path(temporary))
        for system in systems:
            system.try_batches()
        for system in systems:  # anew, so that the memory of other sizes is not counted
            system.start(stack)
        result["peaks"] = run_rounds(systems, singles, arguments.repeats)
        result["systems"] = summarise(systems, result["peaks"])
        linear = arguments.linear
        result["linear"] = measure_linear(systems, Path(temporary), linear) if linear else []
    result["seconds"] = round(time.monotonic() - began)
    page = as_markdown(result)
    print("\n" + page)
    if not arguments.quick:
        write(result, page)


def write(result: dict[str, Any], page: str) -> None:
    """Put the results into their folder."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "embed.md").write_text(page, encoding="utf-8")
    data = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    (RESULTS / "embed.json").write_text(data, encoding="utf-8")
    if result["linear"]:
        (RESULTS / "embed-linear.md").write_text(linear_page(result["linear"]), encoding="utf-8")
        draw(result["linear"], RESULTS / "embed-linear.png")


if __name__ == "__main__":
    main()
