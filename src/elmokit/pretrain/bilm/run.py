"""Raw text to a model folder: prepare, train, evaluate, write.

OUT/config.json, model.safetensors, vocab.txt, softmax.safetensors, README.md, curve.png    the model
OUT/training/corpus, checkpoints, metrics.jsonl                                             the run
"""

import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import torch

from elmokit.corpus import PreparedCorpus, PrepareSettings, prepare_corpus
from elmokit.errors import ConfigError, DataError, MissingExtra
from elmokit.formats import ModelBundle, SoftmaxFile, load_model, save_model
from elmokit.kernels import find_device, flushed_denormals, keep_freed_memory, training_precision
from elmokit.language_model import LanguageModel, Perplexity
from elmokit.model import BiLM, LexiconConfig, WordConfig
from elmokit.pretrain.bilm.network import draw_start_values
from elmokit.pretrain.bilm.recipe import Recipe
from elmokit.pretrain.bilm.report import Evaluation, draw_curve, model_card
from elmokit.pretrain.bilm.softmax_training import SoftmaxTable
from elmokit.pretrain.bilm.trainer import Budget, Status, Trainer, heldout_sentences
from elmokit.text import SPECIAL_TOKENS, Vocabulary, read_texts
from elmokit.training import Checkpoints, Processes

_SOFTMAX_SHARE = 0.15  # of the budget goes into fitting a softmax to a model that came without


@dataclass(frozen=True, kw_only=True)
class Run:
    """What to train, on what, and how long.

    Attributes:
        sources: text files or globs, or one folder that `elmokit prepare` made.
        out: the model's folder.
        settings: of the preparation; None for a prepared folder.
        recipe: of the training.
        budget: of the training.
        start: a model to go on from, whose shape takes the place of the recipe's.
        old_text: text of the domain that `start` was trained on, to see what it loses.
        resume: go on with a run that was interrupted.
        workers: processes that prepare the text.
        device: to train on.
        hdf5: also write the model as AllenNLP and bilm-tf read it.
        command: what the user typed, for the card.
    """

    sources: Sequence[str | Path]
    out: Path
    settings: PrepareSettings | None
    recipe: Recipe
    budget: Budget
    start: str | None = None
    old_text: str | None = None
    resume: bool = False
    workers: int | None = None
    device: str = "cpu"
    hdf5: bool = False
    command: str = ""


def pretrain(
    run: Run, report: Callable[[Status], None] = lambda _: None, say: Callable[[str], None] = lambda _: None
) -> list[Evaluation] | None:
    """Train a model and write it.

    Args:
        run: what to do.
        report: told after every step how far it has come.
        say: told, in words, of what happens.

    Returns:
        The perplexities at the end (to the leading process), or None when it was interrupted, and can be
        resumed.
    """
    keep_freed_memory()
    with flushed_denormals():
        return _pretrain(run, report, say)


def _pretrain(
    run: Run, report: Callable[[Status], None], say: Callable[[str], None]
) -> list[Evaluation] | None:
    device = find_device(run.device)
    processes = Processes.join(device)
    training = run.out / "training"
    if processes.leads:
        _check_paths(run)
    start = None if run.start is None else load_model(run.start)
    corpus = _corpus(run, training, start, processes)
    model, table, recipe = _begin(run, corpus, start)
    model.to(device), table.to(device)
    precision = training_precision(device.type)

    def make_trainer(folder: Path, share: float, *, frozen: bool) -> Trainer:
        return Trainer(
            model,
            table,
            corpus,
            recipe,
            run.budget.part(share),
            folder,
            processes=processes,
            precision=precision,
            frozen=frozen,
            say=say if processes.leads else lambda _: None,
        )

    with _stop_at_interrupt(say) as stopped:
        share = 1.0
        if start is not None and start.softmax is None:
            share -= _SOFTMAX_SHARE
            fitting = make_trainer(training / "softmax", _SOFTMAX_SHARE, frozen=True)
            if Checkpoints.of(training).exist:  # then it was fitted before
                fitting.restore()
            else:
                say("the model has no softmax: one is fitted first, with the rest left as it is")
                if not fitting.run(report, stopped):
                    return None
            del fitting  # and its optimizer's tables with it
        before = _evaluate(run, model, table, corpus) if start is not None and processes.leads else None
        trainer = make_trainer(training, share, frozen=False)
        if not trainer.run(report, stopped):
            return None
    if not processes.leads:
        return []
    after = _evaluate(run, model, table, corpus)
    evaluations = [Evaluation(text, before[text] if before else None, found) for text, found in after.items()]
    _write(run, trainer, evaluations, say)
    return evaluations


def _check_paths(run: Run) -> None:
    """Better now than after hours."""
    training, is_model = run.out / "training", (run.out / "config.json").exists()
    begun = any(Checkpoints.of(folder).exist for folder in (training, training / "softmax"))
    if (begun or is_model) and not run.resume:
        raise DataError(
            f"{run.out} holds a model or a run already; go on with it by --resume, or choose another folder"
        )
    if run.resume and not begun:
        if is_model:
            raise DataError(
                f"{run.out} holds a model, but no longer the run that made it; go on from it by "
                f"--from {run.out} with another folder for --out"
            )
        raise DataError(
            f"{run.out} holds no run to go on with; check the path, or begin one without --resume"
        )
    if run.old_text is not None and not Path(run.old_text).is_file():
        raise DataError(f"{run.old_text} is no file; expected text of the model's old domain")


def _corpus(run: Run, training: Path, start: ModelBundle | None, processes: Processes) -> PreparedCorpus:
    """The prepared corpus, prepared by the leading process where it is not yet."""
    settings = run.settings
    given = None if start is None else _bound_vocabulary(start)
    if settings is None:
        corpus = PreparedCorpus(run.sources[0])
    else:
        if processes.leads:
            if given is not None:
                training.mkdir(parents=True, exist_ok=True)
                given.save(training / "vocab.txt")
                settings = replace(settings, vocabulary=training / "vocab.txt")
            prepare_corpus(run.sources, training / "corpus", settings, workers=run.workers)
        processes.wait()
        corpus = PreparedCorpus(training / "corpus")
    if given is not None and corpus.vocabulary.tokens != given.tokens:
        raise ConfigError(
            f"{corpus.path} was prepared with another vocabulary than that of {run.start}; "
            "prepare it with the model's (--vocabulary vocab.txt), or pass the raw text"
        )
    if start is not None and start.tokenizer.lowercase and not corpus.tokenizer.lowercase:
        raise ConfigError(
            f"{run.start} was trained on text in lower case, {corpus.path} has its capitals; prepare it with "
            "--lowercase"
        )
    return corpus


def _bound_vocabulary(start: ModelBundle) -> Vocabulary | None:
    """The vocabulary of a model, if rows of its weights are numbered by it."""
    if start.softmax is None and not isinstance(start.model.config.encoder, WordConfig):
        return None
    vocabulary = start.vocabulary
    if vocabulary is not None and vocabulary.tokens[: len(SPECIAL_TOKENS)] != SPECIAL_TOKENS:
        raise ConfigError(
            f"the vocabulary of {start.source} begins with {', '.join(vocabulary.tokens[:3])}; only a model "
            f"whose vocabulary begins with {', '.join(SPECIAL_TOKENS)} can be trained further"
        )
    return vocabulary


def _begin(run: Run, corpus: PreparedCorpus, start: ModelBundle | None) -> tuple[BiLM, SoftmaxTable, Recipe]:
    """The model and its softmax as training begins, and the recipe that fits them."""
    recipe = run.recipe
    random = torch.Generator().manual_seed(recipe.seed)
    counts = corpus.counts if recipe.frequency_bias else None
    if start is None:
        encoder, words = recipe.model.encoder, len(corpus.vocabulary)
        if isinstance(encoder, WordConfig) and encoder.num_words != words:
            raise ConfigError(
                f"the recipe's encoder has num_words = {encoder.num_words}, the vocabulary has {words}; "
                f"set num_words = {words}, or prepare the text with --max-vocab {encoder.num_words}"
            )
        model = BiLM(recipe.model)
        draw_start_values(model, random)
    else:
        model = start.model
        if isinstance(model.config.encoder, LexiconConfig):
            raise ConfigError(f"{start.source}: training a model of ELMoForManyLangs further is not possible")
        recipe = replace(recipe, model=model.config)
    softmax = None if start is None or start.softmax is None else start.softmax.read()
    if softmax is not None:
        if softmax.cutoffs:  # an adaptive softmax stays one, and a flat one flat
            recipe = replace(recipe, softmax="adaptive", cutoffs=softmax.cutoffs)
        elif recipe.softmax == "adaptive":
            recipe = replace(recipe, softmax="sampled")
        table = SoftmaxTable.of(softmax)
    else:
        cutoffs = recipe.cutoffs if recipe.softmax == "adaptive" else ()
        if cutoffs and cutoffs[-1] >= len(corpus.vocabulary):
            raise ConfigError(
                f"the cutoffs {list(cutoffs)} of the adaptive softmax lie beyond the vocabulary of "
                f'{len(corpus.vocabulary)} words; choose smaller ones, or softmax = "full"'
            )
        table = SoftmaxTable(len(corpus.vocabulary), model.config.projection_dim, cutoffs)
        table.start(counts, random)
    return model.requires_grad_(True), table, recipe


def _evaluate(run: Run, model: BiLM, table: SoftmaxTable, corpus: PreparedCorpus) -> dict[str, Perplexity]:
    """Perplexity of the held-out text, and of the old domain's where it was given."""
    language_model = LanguageModel(model, table.export(), corpus.vocabulary, corpus.tokenizer)
    found = {}
    if corpus.heldout:
        found["held-out text"] = language_model.perplexity(heldout_sentences(corpus))
    if run.old_text is not None:
        texts = read_texts(run.old_text, split=corpus.tokenizer.language)
        found["old text"] = language_model.perplexity(text for text in texts if text)
    return found


def _write(run: Run, trainer: Trainer, evaluations: list[Evaluation], say: Callable[[str], None]) -> None:
    """Write the model, its card and curve into the run's folder."""
    softmax, corpus = trainer.table.export(), trainer.corpus
    card = model_card(
        run.out.name,
        trainer.model,
        corpus,
        trainer.recipe,
        trainer.position,
        evaluations,
        run.command,
        run.start,
    )
    bundle = ModelBundle(
        model=trainer.model.eval(),
        tokenizer=corpus.tokenizer,
        vocabulary=corpus.vocabulary,
        softmax=SoftmaxFile(len(corpus.vocabulary), lambda: softmax),
        source=str(run.out),
        card=card,
    )
    aside = run.out / "training" / "model"
    shutil.rmtree(aside, ignore_errors=True)
    save_model(bundle, aside)
    for file in aside.iterdir():
        file.replace(run.out / file.name)
    aside.rmdir()
    if run.hdf5:
        shutil.rmtree(run.out / "hdf5", ignore_errors=True)
        save_model(bundle, run.out / "hdf5", format="hdf5")
    try:
        draw_curve(run.out / "training", run.out / "curve.png")
    except MissingExtra as missing:
        say(str(missing))


@contextmanager
def _stop_at_interrupt(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks to stop after this step, the second stops at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        say("stopping after this step, to save it (again Ctrl-C: at once)")

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
