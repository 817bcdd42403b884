"""Convert `options.json` of bilm-tf and AllenNLP to a BiLMConfig and back."""

from collections.abc import Mapping
from typing import Any

from elmokit.base import refuse_unknown_keys
from elmokit.errors import ConfigError
from elmokit.formats.inspect import read_section
from elmokit.model import BiLMConfig, CharCNNConfig, WordConfig

# Present in published files, but used only for training.
_TRAINING_KEYS = (
    "bidirectional", "dropout", "all_clip_norm_val", "n_epochs", "n_train_tokens", "batch_size",
    "n_tokens_vocab", "unroll_steps", "n_negative_samples_batch", "learning_rate", "sample_softmax",
    "share_embedding_softmax", "reverse",
)  # fmt: skip
_LSTM_KEYS = ("dim", "projection_dim", "n_layers", "cell_clip", "proj_clip", "use_skip_connections")
_CHAR_KEYS = (
    "n_characters", "max_characters_per_token", "embedding", "filters", "activation", "n_highway",
    "projection_after_highway",
)  # fmt: skip


def looks_like_options(data: object) -> bool:
    """Return whether parsed JSON is an options file: it has the sizes of an LSTM."""
    return isinstance(data, dict) and isinstance(data.get("lstm"), dict) and "dim" in data["lstm"]


def config_from_options(
    options: Mapping[str, Any], *, char_projection: bool, lstm_projection: bool, num_words: int | None
) -> BiLMConfig:
    """Read the sizes; what the options do not tell follows from the names of the weights.

    Args:
        options: the parsed file. `n_characters` may be 261 (training) or 262 (prediction): the table of
            characters has 261 rows in both cases.
        char_projection: whether the weights have a projection after the highways.
        lstm_projection: whether the weights have projections of the LSTM's state.
        num_words: rows of the table of word vectors, if there is one.
    """
    refuse_unknown_keys(options, ("lstm", "char_cnn", *_TRAINING_KEYS), "options")
    lstm = read_section(options, "lstm", "options")
    refuse_unknown_keys(lstm, _LSTM_KEYS, "options, lstm")
    encoder: CharCNNConfig | WordConfig
    if "char_cnn" in options:
        encoder = _char_cnn(read_section(options, "char_cnn", "options"), char_projection)
    elif num_words is not None:
        encoder = WordConfig(num_words=num_words)
    else:
        raise ConfigError(
            "options have no char_cnn, but the weights have no word vectors ('embedding') either; "
            "pass the options file that came with these weights"
        )
    return BiLMConfig(
        encoder=encoder,
        cell_dim=_required(lstm, "dim", "lstm"),
        projection_dim=_required(lstm, "projection_dim", "lstm"),
        num_layers=lstm.get("n_layers", 1),
        cell_clip=lstm.get("cell_clip") or None,
        projection_clip=lstm.get("proj_clip") or None,
        skip_connections=lstm.get("use_skip_connections") or False,
        projection=lstm_projection,
    )


def options_from_config(config: BiLMConfig) -> dict[str, Any]:
    """Return the options as AllenNLP and bilm-tf's prediction read them: 262 characters, all keys present."""
    if config.layers != "lstm":
        raise ConfigError(
            f"options.json describes LSTM layers, the model has {config.layer_name} layers; use "
            "format='native'"
        )
    options: dict[str, Any] = {
        "lstm": {
            "dim": config.cell_dim,
            "projection_dim": config.projection_dim,
            "n_layers": config.num_layers,
            "cell_clip": config.cell_clip,
            "proj_clip": config.projection_clip,
            "use_skip_connections": config.skip_connections,
        }
    }
    encoder = config.encoder
    if encoder.reads == "bytes":
        options["char_cnn"] = {
            "n_characters": encoder.num_characters + 1,
            "max_characters_per_token": encoder.max_characters,
            "embedding": {"dim": encoder.embedding_dim},
            "filters": [list(pair) for pair in encoder.filters],
            "activation": encoder.activation,
            "n_highway": encoder.num_highway,
        }
    elif encoder.reads == "words":
        options["n_tokens_vocab"] = encoder.num_words
    else:
        raise ConfigError("bilm-tf's layout has no place for a lexicon of characters; use format='native'")
    return options


def _char_cnn(options: Mapping[str, Any], projection: bool) -> CharCNNConfig:
    refuse_unknown_keys(options, _CHAR_KEYS, "options, char_cnn")
    count = options.get("n_characters", 262)
    if count not in (261, 262):
        raise ConfigError(
            f"options, char_cnn: n_characters is {count!r}, expected 261 (training) or 262 (prediction); "
            "ELMo's characters are 256 bytes and five marks"
        )
    return CharCNNConfig(
        filters=_required(options, "filters", "char_cnn"),
        embedding_dim=_required(
            read_section(options, "embedding", "options, char_cnn"), "dim", "char_cnn.embedding"
        ),
        max_characters=options.get("max_characters_per_token", 50),
        activation=_required(options, "activation", "char_cnn"),
        num_highway=options.get("n_highway") or 0,
        projection=projection,
    )


def _required(section: Mapping[str, Any], name: str, where: str) -> Any:  # noqa: ANN401 (JSON holds anything)
    if name not in section:
        raise ConfigError(f"options, {where}: {name!r} is missing; it has {', '.join(section) or 'nothing'}")
    return section[name]
