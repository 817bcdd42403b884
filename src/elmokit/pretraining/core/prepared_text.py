"""The text of a run: prepared where that is not done yet. And what is looked at before hours of work."""

from dataclasses import replace
from pathlib import Path

from elmokit.corpus import PreparedCorpus, is_prepared, prepare_corpus
from elmokit.errors import DataError
from elmokit.pretraining.core.run_record import RunRecord
from elmokit.text import Vocabulary
from elmokit.training import Checkpoints, Processes


def open_corpus(
    record: RunRecord,
    training: Path,
    processes: Processes,
    *,
    workers: int | None,
    again: bool,
    vocabulary: Vocabulary | None = None,
) -> PreparedCorpus:
    """Return the prepared corpus; the leading process prepares it where that is not done yet.

    Args:
        record: What the run was started with; it is saved when the text is there.
        training: The folder of the run.
        processes: That train together.
        workers: Processes that prepare the text.
        again: Whether the text of a resumed run was named again: it must then be the same.
        vocabulary: What the text is numbered by, in place of its own.
    """
    settings, prepared = record.preparation, training / "corpus"
    if settings is None:
        corpus = PreparedCorpus(record.sources[0])
    else:
        if processes.leads and (again or not is_prepared(prepared)):
            if vocabulary is not None:
                training.mkdir(parents=True, exist_ok=True)
                vocabulary.save(training / "vocab.txt")
                settings = replace(settings, vocabulary=training / "vocab.txt")
            try:
                prepare_corpus(record.sources, prepared, settings, workers=workers)
            except KeyboardInterrupt:
                record.save(training)
                raise
        processes.wait()
        corpus = PreparedCorpus(prepared)
    return corpus


def check_places(out: Path, *, resume: bool, old_text: str | Path | None = None) -> None:
    """Check the output folder and the old text before hours of work.

    Raises:
        DataError: `out` holds something else than it should, or there is no old text.
    """
    training, is_model = out / "training", (out / "config.json").exists()
    trained = any(Checkpoints(folder).exist for folder in (training, training / "softmax"))
    begun = trained or (training.is_dir() and not is_model)  # it may have stopped before the first checkpoint
    if (trained or is_model) and not resume:
        raise DataError(
            f"{out} holds a model or a run already; continue it with resume=True, or choose another folder"
        )
    if resume and not begun:
        if is_model:
            raise DataError(
                f"{out} holds a model, but no longer the run that made it; to train it further, pass it as "
                f"start='{out}' with another folder for the result"
            )
        raise DataError(f"{out} holds no run to resume; check the path, or start one without resume=True")
    if old_text is not None and not Path(old_text).is_file():
        raise DataError(f"{old_text} is not a file; expected text of the model's old domain")
