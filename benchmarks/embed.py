"""How fast elmokit embeds, beside AllenNLP 2.10.1, MiniLM-L6 and a static table, in one run on this machine.

    ELMOKIT_DATA=… python benchmarks/embed.py            # a quarter of an hour on two free cores
    ELMOKIT_DATA=… python benchmarks/embed.py --quick    # small shape, few sentences, nothing written
    ELMOKIT_DATA=… python benchmarks/embed.py --linear 1000000    # also cost against tokens, with a picture

Every library runs in a process of its own; all of a shape embed the same sentences of WikiText-2 (weights are
random, MiniLM's are its own), of which the slow rivals get the first few. elmokit's rows differ in engine:
the best instruction set of the native kernel, AVX2, and the torch path. Rounds go over all systems in turn.
Figures are medians over rounds at the better batch size, ratios those of the rounds' own ratios. AllenNLP
takes batches as they are given; a second row hands it sentences sorted by length, which spares it much
padding, a third holds it to AVX2 (ATEN_CPU_CAPABILITY and the like), as elmokit's rows of that engine are.
Results go to `results/embed.md` and `.json` (`embed-original` for that shape alone).

What is counted: tokens are words, without `<S>` and `</S>`. Each round of elmokit starts with an empty table
of words, so the token encoder's time is in it; "words known" says otherwise. Processor time adds up all
threads; where other programs run too it says more than the clock (set OMP_WAIT_POLICY=PASSIVE then, or
threads that wait count as busy). How near the engine comes to what the CPU can do is what `roofline.py`
measures.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from common import SHAPES, machine, markdown_table, random_model, wikitext_sentences, write_hdf5
from elmokit.kernels import engine_name, supported
from elmokit.kernels.native import engines
from peers import Peer

RESULTS = Path(__file__).parent / "results"
# Of the small shape more: on a short text its time is mostly that of words seen for the first time.
SENTENCES = {"original": 128, "small": 1024}
RIVALS = 64  # sentences for the slow ones, whose speed does not depend on it
SINGLES = 20  # sentences that are embedded one by one in each round; they come after the text of the round
ALLENNLP, ALLENNLP_SORTED = "AllenNLP 2.10.1", "AllenNLP, sorted for it"
ALLENNLP_AVX2, HELD = "AllenNLP, held to AVX2", "-avx2"
MINILM, MINILM_INT8 = "MiniLM-L6, sorted for it", "MiniLM-L6 by onnxruntime, sorted for it"
Sentences = list[list[str]]


@dataclass
class System:
    """One row of the table.

    Attributes:
        name, shape, precision: what it is; shape "" is MiniLM.
        worker, model: which of the peers runs it, and what it is to load.
        batches: the sizes to try: sentences, or tokens for elmokit.
        text: what it embeds.
        sort: whether we hand it the sentences sorted by length.
        engine: of elmokit.
        known: whether elmokit has seen all words before.
        found: for each of the best sizes, tokens a second of each round, by the clock and by processor time.
        singles: seconds of single sentences.
    """

    name: str
    shape: str
    precision: str
    worker: str
    model: dict[str, str]
    batches: Sequence[int]
    text: Sentences
    sort: bool = False
    engine: str = ""
    known: bool = False
    found: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    singles: list[float] = field(default_factory=list)

    @property
    def ours(self) -> bool:
        """Whether it is elmokit."""
        return self.worker == "elmokit"

    @property
    def title(self) -> str:
        """Name, engine, precision and shape."""
        known = "words known" if self.known else ""
        return " ".join(part for part in (self.name, self.engine, self.precision, self.shape, known) if part)

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

    def load(self, peers: dict[str, Peer]) -> Peer:
        """Let its library load what it needs."""
        peer = peers[self.worker]
        peer.ask("load", **self.model)
        return peer

    def rate(self, peer: Peer, batch: int) -> tuple[float, float]:
        """Tokens a second over its text, by the clock and by processor time."""
        sentences = self.text
        if self.sort:
            sentences = sorted(sentences, key=len, reverse=True)
        known = {"known": True} if self.known else {}
        answer = peer.ask("embed", sentences=sentences, batch=batch, **known)
        return num_tokens(sentences) / sum(answer["seconds"]), num_tokens(sentences) / answer["cpu_seconds"]

    def run_round(self, peers: dict[str, Peer], singles: Sentences) -> None:
        """Embed all sentences at each size, then some one by one."""
        peer = self.load(peers)
        for batch in self.batches:
            rates = self.found.setdefault(batch, [])
            rates.append(self.rate(peer, batch))
            print(f"  {self.title}, batch {batch}: {rates[-1][1]:.0f} tokens per CPU-second", flush=True)
        self.singles += peer.ask("single", sentences=singles)["seconds"]


def num_tokens(sentences: Sentences) -> int:
    """Words of all sentences."""
    return sum(map(len, sentences))


def all_systems(texts: dict[str, Sentences], folder: Path) -> list[System]:
    """Write the models and name what is to be measured; MiniLM and the table take the last text."""
    systems = []
    for shape, text in texts.items():
        batches = (32, 64)
        files = write_hdf5(random_model(SHAPES[shape]), folder / shape)
        for precision, engine, known in _our_rows():
            model = {**files, "precision": precision, "engine": engine}
            row = System("elmokit", shape, precision, "elmokit", model, (8192,), text)
            row.engine, row.known = engine, known
            systems.append(row)
        for name, held, sort in (
            (ALLENNLP, "", False),
            (ALLENNLP_SORTED, "", True),
            (ALLENNLP_AVX2, HELD, False),
        ):
            few = text[:RIVALS]
            systems.append(System(name, shape, "float32", "allennlp" + held, files, batches, few, sort=sort))
    sizes, few = (16, 32), text[:RIVALS]
    systems.append(System("static table", "", "float32", "static", {}, (1,), text))
    systems.append(System(MINILM_INT8, "", "int8", "minilm_onnx", {}, sizes, few, sort=True))
    systems.append(System(MINILM, "", "float32", "minilm", {}, sizes, few, sort=True))
    return systems


def _our_rows() -> Iterator[tuple[str, str, bool]]:
    """Precision, engine, and whether words are known, of each of our rows."""
    for precision in supported():
        best = engine_name(precision)
        yield precision, best, False
        if precision == "bfloat16":
            continue
        yield precision, best, True
        names = {engine.name for engine in engines(precision)}
        for name in {"avx2"} & names - {best}:
            yield precision, name, False
            yield precision, name, True
        if best != "torch":
            yield precision, "torch", False


def run_rounds(systems: list[System], peers: dict[str, Peer], singles: Sentences, repeats: int) -> None:
    """Go over all systems in turn, forth and back."""
    for number in range(repeats):
        print(f"round {number + 1}", flush=True)
        for system in systems if number % 2 == 0 else reversed(systems):
            system.run_round(peers, singles[number * SINGLES : (number + 1) * SINGLES])


def summarise(systems: list[System]) -> list[dict[str, Any]]:
    """One record for each system."""
    records = []
    for system in systems:
        rivals = {rival.name: rival for rival in systems if rival.shape == system.shape and not rival.ours}
        records.append(
            {
                "system": system.name,
                "engine": system.engine,
                "shape": system.shape,
                "precision": system.precision,
                "words known": "yes" if system.known else "",
                "batch": f"{system.batch} {'tokens' if system.ours else 'sentences'}",
                "tokens/s": round(median(system.rates)),
                **_ratios(system, rivals),
                "÷ MiniLM": _ratio(system.rates, systems[-1].rates),
                "÷ MiniLM by processor time": _ratio(system.cpu_rates, systems[-1].cpu_rates),
                "÷ MiniLM int8 by processor time": _ratio(system.cpu_rates, systems[-2].cpu_rates),
                "one sentence p50, ms": 1e3 * median(system.singles),
                "p95, ms": 1e3 * quantiles(system.singles, n=20)[-1],
                "rounds": {"tokens/s": system.rates, "tokens per CPU-second": system.cpu_rates},
            }
        )
    return records


def _ratios(system: System, rivals: dict[str, System]) -> dict[str, float | None]:
    """How many times as fast as AllenNLP, by the clock and by processor time; nothing for MiniLM."""
    if not system.shape:
        return dict.fromkeys(
            ("÷ AllenNLP", "… by processor time", "÷ AllenNLP sorted", "÷ AllenNLP held to AVX2")
        )
    plain, by_length = rivals[ALLENNLP], rivals[ALLENNLP_SORTED]
    return {
        "÷ AllenNLP": _ratio(system.rates, plain.rates),
        "… by processor time": _ratio(system.cpu_rates, plain.cpu_rates),
        "÷ AllenNLP sorted": _ratio(system.rates, by_length.rates),
        "÷ AllenNLP held to AVX2": _ratio(system.rates, rivals[ALLENNLP_AVX2].rates),
    }


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def measure_linear(
    systems: list[System], peers: dict[str, Peer], folder: Path, most: int
) -> list[dict[str, float]]:
    """Seconds and peak memory of the small shape in int8 for 1,000, 10,000, … tokens."""
    system = next(s for s in systems if s.ours and s.shape == "small" and s.precision == "int8")
    peer, text = system.load(peers), folder / "train.txt"
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
        answer = peer.ask("stream", path=str(text), num_tokens=tokens, batch=system.batch)
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
    figure.suptitle("elmokit, small shape, int8, random weights")
    figure.savefig(path, dpi=150)


def as_markdown(result: dict[str, Any]) -> str:
    """The page of results."""
    records = result["systems"]
    columns = [name for name in records[0] if name != "rounds"]
    parts = [
        "# Embedding speed",
        "Made by `python benchmarks/embed.py`: "
        + ", ".join(
            f"{count:,} sentences for the {shape} shape" for shape, count in result["sentences"].items()
        )
        + f" of WikiText-2, random weights, {result['rounds']} interleaved rounds, medians. How things "
        "are counted stands at the head of that file. The “÷” columns are ratios of tokens/s within a round.",
        markdown_table(["machine", ""], result["machine"].items()),
        markdown_table(columns, ([_shown(name, record[name]) for name in columns] for record in records)),
    ]
    return "\n\n".join(parts) + "\n"


def linear_page(points: list[dict[str, float]]) -> str:
    """Cost against tokens, as a page of its own: it is not measured in every run."""
    rows = ([f"{p['tokens']:,}", p["seconds"], f"{p['megabytes']:.0f}"] for p in points)
    return (
        "# Cost against tokens\n\n"
        "elmokit, small shape, int8: `python benchmarks/embed.py --linear 1000000`.\n\n"
        "![seconds and memory against tokens](embed-linear.png)\n\n"
        + markdown_table(["tokens", "seconds", "peak memory, MB"], rows)
        + "\n"
    )


def _shown(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1f}" if "ms" in name else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--sentences", type=int, help="how many (default 128; 1,024 for the small shape)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--threads", type=int, help="of each library (default: all cores)")
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
    result: dict[str, Any] = {"machine": machine(), "sentences": counts, "rounds": arguments.repeats}
    with TemporaryDirectory() as temporary, ExitStack() as stack:
        systems = all_systems(texts, Path(temporary))
        names = {system.worker for system in systems}
        peers = {
            name: stack.enter_context(
                Peer(name.removesuffix(HELD), threads=arguments.threads, avx2=name.endswith(HELD))
            )
            for name in names
        }
        run_rounds(systems, peers, singles, arguments.repeats)
        result["systems"] = summarise(systems)
        linear = arguments.linear
        result["linear"] = measure_linear(systems, peers, Path(temporary), linear) if linear else []
    result["seconds"] = round(time.monotonic() - began)
    page = as_markdown(result)
    print("\n" + page)
    if not arguments.quick:
        write(result, page, "embed-original" if arguments.shapes == ["original"] else "embed")


def write(result: dict[str, Any], page: str, name: str) -> None:
    """Put the results into their folder."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(page, encoding="utf-8")
    data = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    (RESULTS / f"{name}.json").write_text(data, encoding="utf-8")
    if result["linear"]:
        (RESULTS / "embed-linear.md").write_text(linear_page(result["linear"]), encoding="utf-8")
        draw(result["linear"], RESULTS / "embed-linear.png")


if __name__ == "__main__":
    main()
