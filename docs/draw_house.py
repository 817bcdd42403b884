"""Draw docs/pictures/house.svg: the rooms of src/elmokit on the floors that import-linter checks.

    python docs/draw_house.py

Boxes carry their own background, and text between them is grey, so that the picture can be read on white and
on black.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDTH, FLOOR, GAP, LEFT, RIGHT = 880, 58, 8, 30, 850

# What each room holds, in the few words that fit into its box.
ROOMS = {
    "cli": "one file per command: parse, call, print",
    "compat": "AllenNLP, bilm-tf, ELMoForManyLangs, simple_elmo",
    "graph": "documents to a knowledge graph",
    "integrations": "spaCy, transformers, scikit-learn, …",
    "serving": "HTTP API and a page",
    "tasks": "tasks/core, one package per task",
    "search": "indexes, uses of a word",
    "pretraining": "raw text to a model: pretraining/bilm",
    "training": "the one training loop: budget, checkpoints, resume",
    "encoders": "ELMo, static vectors, BERT, characters",
    "language_model": "perplexity, score, fill, generate",
    "corpus": "raw text to shards",
    "embed": "text to vectors: the main job",
    "decoding": "sampling of the next token",
    "vectors": "vector files, written and read",
    "doctor": "what any file of elmokit is, and what is wrong with it or with a text",
    "formats": "files ↔ models, one file per format",
    "model": "biLM, character CNN, mix, softmax, CRF: the reference",
    "kernels": "LSTM steps, precision, threads",
    "text": "tokenizers, characters, sentences",
    "base": "files, settings, progress, worker processes",
    "errors": "ElmoError and its subclasses",
}
COLOURS = {  # by job: what users call, what learns, what embeds, what everything stands on
    "#dbeafe": ("cli", "compat", "graph", "integrations", "serving", "doctor"),
    "#dcfce7": ("tasks", "search", "pretraining", "training", "encoders", "language_model", "corpus"),
    "#fef3c7": ("embed", "decoding", "vectors", "formats", "model"),
    "#ede9fe": ("kernels", "text", "base", "errors"),
}


def floors() -> list[list[str]]:
    """Return the rooms of each floor, the top floor first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == ["elmokit"])
    return [layer.split(" | ") for layer in layers]


def box(room: str, x: float, y: float, width: float) -> str:
    """Return the box of one room."""
    colour = next(colour for colour, rooms in COLOURS.items() if room in rooms)
    middle = x + width / 2
    size = min(13.0, 1.75 * width / len(ROOMS[room]))
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{FLOOR - GAP}" rx="7" fill="{colour}"/>\n'
        f'<text x="{middle:.1f}" y="{y + 21}" class="room">{room}</text>\n'
        f'<text x="{middle:.1f}" y="{y + 39}" font-size="{size:.1f}">{ROOMS[room]}</text>\n'
    )


def draw() -> str:
    """Return the picture."""
    rows = floors()
    height = FLOOR * len(rows) + 40
    parts = []
    for number, rooms in enumerate(rows):
        y = 8 + FLOOR * number
        needed = [max(len(ROOMS[room]), 22) for room in rooms]
        free = RIGHT - LEFT - GAP * (len(rooms) - 1)
        x = float(LEFT)
        for room, share in zip(rooms, needed, strict=True):
            width = free * share / sum(needed)
            parts.append(box(room, x, y, width))
            x += width + GAP
    arrow = f'<path d="M14 20 V{height - 60} m-5 -8 l5 8 l5 -8" fill="none" stroke="#808080"/>\n'
    rule = "a room imports only from floors below it"
    note = f'<text x="{WIDTH / 2}" y="{height - 12}" class="note">{rule}</text>\n'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="The rooms of elmokit, floor by floor">\n'
        "<style>text { font-family: system-ui, sans-serif; text-anchor: middle; fill: #1f2937 }\n"
        ".room { font-weight: 650; font-size: 15px } .note { fill: #808080; font-size: 13px }</style>\n"
        f"{arrow}{''.join(parts)}{note}</svg>\n"
    )


if __name__ == "__main__":
    (ROOT / "docs/pictures/house.svg").write_text(draw(), encoding="utf-8")
