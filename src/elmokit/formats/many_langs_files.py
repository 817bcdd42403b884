"""Read folders of ELMoForManyLangs; the NLPL repository has zips of them.

config.json             arguments of the training command; `config_path` names the network file
*.json                  the network file: `encoder`, `token_embedder`
char.dic, word.dic      symbol, TAB, id
token_embedder.pkl      state dicts by torch.save; no code in them is run
encoder.pkl
"""

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from torch import Tensor

from elmokit.base import parse_count, plain_lines
from elmokit.errors import ConfigError, DataError, ModelFileError
from elmokit.formats.allennlp_layout import (
    convolution_entries,
    highway_entries,
    lstm_entries,
    projection_entries,
)
from elmokit.formats.bundle import ModelBundle
from elmokit.formats.inspect import describe_file, read_json, read_section
from elmokit.formats.layout import PLAIN, Entry, check_dtypes, check_shapes, make_model
from elmokit.formats.pickled import load_pickled
from elmokit.model import BiLMConfig, CharCNNConfig, LexiconConfig
from elmokit.text import Lexicon, TokenizerSpec

_WEIGHTS = ("token_embedder.pkl", "encoder.pkl")

# The network that most published models name; it comes with the program, not with the models.
_DEFAULT_NAMES = ("cnn_0_100_512_4096_sample.json", "cnn_50_100_512_4096_sample.json")
_DEFAULT_NETWORK = {
    "encoder": {
        "name": "elmo", "projection_dim": 512, "dim": 4096, "n_layers": 2, "cell_clip": 3, "proj_clip": 3,
    },
    "token_embedder": {
        "name": "cnn", "activation": "relu", "n_highway": 2, "word_dim": 100, "char_dim": 50,
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "max_characters_per_token": 50,
    },
}  # fmt: skip


def is_many_langs(folder: Path) -> bool:
    """Return whether a folder holds such a model, or a part of one."""
    return any((folder / name).is_file() for name in _WEIGHTS)


def read_many_langs(folder: Path, tokenizer: TokenizerSpec) -> ModelBundle:
    """Read a model.

    Raises:
        ModelFileError: a file is missing, damaged, or does not fit the others.
        ConfigError: the network is not valid, or of an unknown kind.
    """
    missing = [name for name in ("config.json", "char.dic", *_WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise ModelFileError(
            f"{folder}: is an ELMoForManyLangs model without its {', '.join(missing)}; get the whole folder"
        )
    network, name = _network(folder)
    tensors = {
        f"{path}: {key}": tensor for path in _WEIGHTS for key, tensor in _read_state(folder / path).items()
    }
    check_dtypes(folder, {key: str(tensor.dtype).removeprefix("torch.") for key, tensor in tensors.items()})
    shapes = {key: tuple(tensor.shape) for key, tensor in tensors.items()}
    config = _config(network, shapes, name)
    entries = list(_entries(config))
    expected = {entry.name: entry.shape for entry in entries}
    check_shapes(expected, shapes, f"{folder}: weights and {name}", "get the folder again")
    return ModelBundle(
        model=make_model(
            config, entries, lambda entry: tensors[entry.name].float(), [folder / name for name in _WEIGHTS]
        ),
        tokenizer=tokenizer,
        lexicon=_lexicon(folder, shapes),
        source=f"ELMoForManyLangs folder {folder}",
    )


def _network(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the sizes of the network and the name of their file."""
    named = read_json(folder / "config.json").get("config_path")
    if not isinstance(named, str):
        raise ModelFileError(f"{folder / 'config.json'}: names no network file (config_path); get it again")
    given = PurePosixPath(named.replace("\\", "/"))
    inside = not given.is_absolute() and ".." not in given.parts
    path = folder / given.name  # the path is often one on another machine: use its name
    for place in (folder / given, path) if inside else (path,):
        if place.is_file():
            return read_json(place), place.name
    if path.name in _DEFAULT_NAMES:
        return _DEFAULT_NETWORK, path.name
    raise ModelFileError(f"{folder}: config.json names the network {named!r}, which is not in the folder")


def _config(network: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], name: str) -> BiLMConfig:
    encoder, embedder = (read_section(network, part, name) for part in ("encoder", "token_embedder"))
    for part, known in ((encoder, ("elmo", "lstm")), (embedder, ("cnn",))):
        if str(part.get("name")).lower() not in known:
            raise ConfigError(
                f"{name}: a network of kind {part.get('name')!r} cannot be read, only {' or '.join(known)}"
            )
    joined = encoder["name"].lower() == "lstm"
    try:
        characters = CharCNNConfig(
            filters=embedder["filters"],
            embedding_dim=embedder["char_dim"],
            max_characters=embedder["max_characters_per_token"],
            num_characters=_rows(shapes, _CHARACTERS),
            activation=embedder["activation"],
            num_highway=embedder["n_highway"],
            projection=False,
        )
        has_words = embedder["word_dim"] != 0
        return BiLMConfig(
            encoder=LexiconConfig(
                characters=characters,
                num_words=_rows(shapes, _WORDS) if has_words else 0,
                word_dim=embedder["word_dim"],
            ),
            cell_dim=encoder["dim"],
            projection_dim=encoder["projection_dim"],
            num_layers=encoder["n_layers"],
            cell_clip=None if joined else encoder.get("cell_clip") or None,
            projection_clip=None if joined else encoder.get("proj_clip") or None,
            skip_connections=not joined,
            forget_bias=0.0,  # the weights include it
            joined_directions=joined,
        )
    except KeyError as error:
        raise ConfigError(f"{name}: {error} is missing") from error


_CHARACTERS = "token_embedder.pkl: char_emb_layer.embedding.weight"
_WORDS = "token_embedder.pkl: word_emb_layer.embedding.weight"


def _rows(shapes: Mapping[str, tuple[int, ...]], name: str) -> int:
    if not shapes.get(name):
        raise ModelFileError(f"{name} is missing; get the file again")
    return shapes[name][0]


def _entries(config: BiLMConfig) -> Iterator[Entry]:
    encoder = config.encoder
    assert encoder.reads == "characters"
    characters, file = encoder.characters, "token_embedder.pkl: "
    shape = (characters.num_characters, characters.embedding_dim)
    yield Entry(_CHARACTERS, shape, ("encoder.characters.embedding.weight",), *PLAIN)
    if encoder.num_words:
        yield Entry(_WORDS, (encoder.num_words, encoder.word_dim), ("encoder.words.weight",), *PLAIN)
    yield from convolution_entries(characters, file + "convolutions.{}.", "encoder.characters")
    yield from highway_entries(characters, file + "highways._layers.{}.", "encoder.characters")
    yield from projection_entries(config, file + "projection.", encoder.word_dim + characters.num_filters)
    yield from (_joined_entries if config.joined_directions else lstm_entries)(config, "encoder.pkl: ")


def _joined_entries(config: BiLMConfig, prefix: str) -> Iterator[Entry]:
    """List the tensors of torch's bidirectional LSTM, and of the projection of its top layer."""
    cell, dim = config.cell_dim, config.projection_dim
    for layer in range(config.num_layers):
        shapes = {"weight_ih": (4 * cell, 2 * cell if layer else dim), "weight_hh": (4 * cell, cell)}
        for name, shape in (shapes | {"bias_ih": (4 * cell,), "bias_hh": (4 * cell,)}).items():
            for suffix in ("", "_reverse"):
                key = f"{name}_l{layer}{suffix}"
                yield Entry(f"{prefix}encoder.{key}", shape, (f"layers.0.lstm.{key}",), *PLAIN)
    for name, shape in (("weight", (dim, cell)), ("bias", (dim,))):
        yield Entry(f"{prefix}projection.{name}", shape, (f"layers.0.projection.{name}",), *PLAIN)


def _read_state(path: Path) -> dict[str, Tensor]:
    try:
        if zipfile.is_zipfile(path):
            _check_stored(path)
        state = load_pickled(path, mapped=True)  # a mapped tensor cannot be larger than the file
    except Exception as error:  # torch raises errors of any kind for damaged pickles
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelFileError(
            f"{path}: is {describe_file(path)}, not a state dict of tensors ({reason:.200}); "
            "no code in it was run: get it again"
        ) from error
    # Not contiguous: a view that repeats its numbers could make a small file fill the memory.
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) and tensor.is_contiguous()
        for name, tensor in state.items()
    ):
        raise ModelFileError(f"{path}: expected a state dict of contiguous tensors; get it again")
    return state


def _check_stored(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
            raise ValueError("parts of it are compressed, which torch.save never does")


def _lexicon(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> Lexicon:
    try:
        words = _read_dic(folder / "word.dic", shapes[_WORDS][0]) if _WORDS in shapes else None
        return Lexicon(_read_dic(folder / "char.dic", shapes[_CHARACTERS][0]), words)
    except DataError as error:
        raise ModelFileError(f"{folder}: {error}; get its .dic files again") from error


def _read_dic(path: Path, rows: int) -> dict[str, int]:
    numbers: dict[str, int] = {}
    if not path.is_file():
        raise ModelFileError(f"{path}: is {describe_file(path)}, expected a lexicon in UTF-8")
    for count, line in enumerate(plain_lines(path, whole=True), start=1):
        try:
            text = line.decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise ModelFileError(f"{path}: line {count} is not UTF-8 ({error}); get it again") from error
        if not text.strip():
            continue
        symbol, _, written = text.strip().rpartition("\t")
        number = parse_count(written)
        if number is None:
            raise ModelFileError(f"{path}: line {count} is {text[:60]!r}, expected symbol, TAB and id")
        numbers[symbol or "\u3000"] = number  # strip has removed a white-space symbol
        if len(numbers) > rows:
            raise ModelFileError(f"{path}: has more symbols than the weights have rows, {rows}; get it again")
    return numbers
