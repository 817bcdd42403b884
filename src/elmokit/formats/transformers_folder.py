"""Models in folders as transformers saves them, and how elmokit tells which tokenizer gave their words."""

from pathlib import Path
from typing import Any, Literal, NamedTuple

from elmokit.errors import MissingExtra, ModelFileError
from elmokit.text import TokenizerSpec

# The setting in config.json that holds the tokenizer of words, where elmokit has pretrained the model.
WORDS_SETTING = "elmokit_tokenizer"


class TransformersModel(NamedTuple):
    """A model of transformers, its tokenizer of pieces, and the tokenizer of words if the files name it."""

    model: Any  # untyped
    pieces: Any
    words: TokenizerSpec | None


def open_transformers(
    folder: str | Path, kind: Literal["AutoModel", "AutoModelForMaskedLM"], use: str
) -> TransformersModel:
    """Open a folder as transformers saves it, in float32; nothing is downloaded.

    Args:
        folder: Of the model.
        kind: The class of transformers that opens it.
        use: What it is opened for, for a message.

    Raises:
        MissingExtra: transformers is not installed.
        ModelFileError: The folder does not exist, or does not hold a model and its tokenizer.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("transformers", "transformers", use) from error
    if not Path(folder).is_dir():
        raise ModelFileError(f"{folder} is not a folder; expected one as transformers saves it")
    say = transformers.utils.logging
    say.disable_progress_bar()
    before = say.get_verbosity()
    say.set_verbosity_error()  # it would tell which weights of heads are left out
    try:
        pieces = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, add_prefix_space=True
        )
        model = getattr(transformers, kind).from_pretrained(folder, local_files_only=True).float().eval()
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ModelFileError(f"{folder}: transformers cannot open it: {reason}") from error
    finally:
        say.set_verbosity(before)
    if not pieces.is_fast:
        raise ModelFileError(
            f"{folder}: its tokenizer is one of transformers' slow ones, which do not say which word a "
            "piece belongs to; save it with a fast one (tokenizer.json)"
        )
    recorded = getattr(model.config, WORDS_SETTING, None)
    return TransformersModel(model, pieces, None if recorded is None else TokenizerSpec(**recorded))
