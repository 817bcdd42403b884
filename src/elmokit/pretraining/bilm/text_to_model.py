"""From raw text to a model folder: prepare, train, evaluate, write.

OUT/config.json, model.safetensors, vocab.txt, softmax.safetensors, README.md, curve.png    the model
OUT/training/corpus, checkpoints, metrics.jsonl                                             the run
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmokit.base import StartStep, move_files, progress_display
from elmokit.corpus import PreparedCorpus, PrepareSettings, is_prepared, prepare_corpus
from elmokit.errors import ConfigError, DataError, MissingExtra
from elmokit.formats import ModelBundle, SoftmaxFile, load_model, save_model
from elmokit.kernels import (
    find_device,
    flushed_denormals,
    keep_freed_memory,
    training_precision,
    whole_pieces,
)
from elmokit.language_model import LanguageModel, Perplexity
from elmokit.model import BiLM
from elmokit.pretraining.bilm.bilm_job import BiLMJob, heldout_sentences
from elmokit.pretraining.bilm.model_card import PerplexityChange, draw_curve, model_card
from elmokit.pretraining.bilm.old_checkpoint import convert_old_checkpoints
from elmokit.pretraining.bilm.recipe import Recipe, read_recipe
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable
from elmokit.pretraining.bilm.start import bound_vocabulary, start_training
from elmokit.text import read_texts
from elmokit.training import (
    Budget,
    Checkpoints,
    Loop,
    Plan,
    Processes,
    Schedule,
    status_bar,
    stop_at_interrupt,
)

_SOFTMAX_SHARE = 0.15  # of the budget goes into fitting a softmax to a model that came without one
_EXPLODED = 2.0  # above the usual loss: more than seven times the perplexity


def pretrain(
    sources: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    minutes: float | None = None,
    tokens: int | None = None,
    epochs: float | None = None,
    language: str | None = None,
    preparation: PrepareSettings | Mapping[str, Any] | None = None,
    recipe: str | Path | Recipe = "default",
    size: str | None = None,
    start: str | Path | None = None,
    old_text: str | Path | None = None,
    resume: bool = False,
    workers: int | None = None,
    device: str = "cpu",
    hdf5: bool = False,
    command: str = "",
    progress: bool = False,
) -> list[PerplexityChange]:
    """Train a biLM on text and write it into a folder.

    Args:
        sources: Text files or globs, or one folder that `elmokit prepare` made.
        out: The folder of the model.
        minutes: Train that long.
        tokens: Or on that many tokens.
        epochs: Or for that many passes over the text; one pass if no budget is given.
        language: Of the text, such as "en", if it is to be prepared in the default way.
        preparation: How to prepare the text: settings, or what `PrepareSettings.from_options` takes.
        recipe: "default", "paper", a TOML file, or a `Recipe`.
        size: "tiny", "small", "medium" or "original", in place of the recipe's shape.
        start: A model to train further; its shape takes the place of the recipe's.
        old_text: Text of the domain that `start` was trained on, to see what it loses.
        resume: Continue an interrupted run in `out`.
        workers: Processes that prepare the text.
        device: To train on.
        hdf5: Also write the model as AllenNLP and bilm-tf read it.
        command: What the user typed, for the model card.
        progress: Show how far it is, on standard error.

    Returns:
        The perplexities at the end. Of several processes only the leading one gets any.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; `resume=True` continues.
        ConfigError: Settings do not fit together, or not with the run that is to be resumed.
        DataError: The text cannot be read, or `out` cannot be used.
    """
    if minutes is tokens is epochs is None:
        epochs = 1.0
    folder, sources = Path(out), [sources] if isinstance(sources, str | Path) else list(sources)
    chosen = recipe if isinstance(recipe, Recipe) else read_recipe(str(recipe), size)
    with ExitStack() as stack:
        stack.enter_context(flushed_denormals())
        stack.enter_context(keep_freed_memory())
        processes = stack.enter_context(Processes.joined(find_device(device)))
        display = stack.enter_context(progress_display(shown=progress and processes.leads))
        if processes.leads:
            _check_paths(folder, resume=resume, old_text=old_text)
        bundle = None if start is None else load_model(start)
        if not isinstance(preparation, PrepareSettings):
            options = dict(preparation or {}) | ({} if language is None else {"language": language})
            preparation = _preparation(sources, options, bundle)
        corpus = _open_corpus(sources, folder / "training", preparation, bundle, workers, processes)
        model, table, chosen = start_training(chosen, corpus, bundle)
        run = _Run(
            model=model.to(find_device(device)),
            table=table.to(find_device(device)),
            corpus=corpus,
            recipe=chosen,
            budget=Budget(minutes=minutes, tokens=tokens, epochs=epochs),
            folder=folder / "training",
            processes=processes,
            display=display,
            stopped=stack.enter_context(stop_at_interrupt(display.say)),
        )
        share = 1.0
        if bundle is not None and bundle.softmax is None:
            share -= _SOFTMAX_SHARE
            run.fit_softmax()
        before = run.evaluate(old_text) if bundle is not None and processes.leads else {}
        loop = run.train(run.folder, share, frozen=False)
        if not processes.leads:
            return []
        after = run.evaluate(old_text)
        changes = [PerplexityChange(text, before.get(text), found) for text, found in after.items()]
        card = model_card(folder.name, model, corpus, chosen, loop.position, changes, command, start)
        _write_model(run, folder, card, hdf5=hdf5)
        return changes


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What all phases of a run share."""

    model: BiLM
    table: SoftmaxTable
    corpus: PreparedCorpus
    recipe: Recipe
    budget: Budget
    folder: Path
    processes: Processes
    display: StartStep
    stopped: Callable[[], bool]

    def train(self, folder: Path, share: float, *, frozen: bool) -> Loop:
        """Train for a share of the budget; raise KeyboardInterrupt if stopped before its end."""
        loop = self._loop(folder, share, frozen=frozen)
        # The job works on two threads of its own; between their work there are only short operations, for
        # which torch's threads would spin.
        with whole_pieces():
            finished = loop.run(status_bar(self.display, "training"), self.stopped)
        if not finished:
            raise KeyboardInterrupt(
                f"interrupted; {self.folder.parent} keeps what was learnt, and resume=True continues"
            )
        return loop

    def fit_softmax(self) -> None:
        """Train a softmax for a model that came without one, once."""
        folder = self.folder / "softmax"
        if Checkpoints(self.folder).exist:
            self._loop(folder, _SOFTMAX_SHARE, frozen=True).state.restore()
        else:
            self.display.say("the model has no softmax: one is fitted first, with the rest left as it is")
            self.train(folder, _SOFTMAX_SHARE, frozen=True)

    def _loop(self, folder: Path, share: float, *, frozen: bool) -> Loop:
        recipe = self.recipe
        convert_old_checkpoints(folder)
        precision = training_precision(self.table.weight.device.type)
        job = BiLMJob(
            *(self.model, self.table, self.corpus, recipe),
            processes=self.processes,
            precision=precision,
            frozen=frozen,
        )
        schedule = Schedule(peak=recipe.learning_rate, warmup=recipe.warmup, decay=recipe.decay)
        plan = Plan(budget=self.budget.part(share), schedule=schedule, exploded=_EXPLODED)
        settings = recipe.to_dict() | {"corpus": self.corpus.fingerprint}
        return Loop(job, folder, plan, settings=settings, processes=self.processes, say=self.display.say)

    def evaluate(self, old_text: str | Path | None) -> dict[str, Perplexity]:
        """Measure the perplexity of the held-out text, and of the old domain's where it was given."""
        corpus = self.corpus
        lm = LanguageModel(self.model, self.table.export(), corpus.vocabulary, corpus.tokenizer)
        found = {}
        if corpus.heldout:
            found["held-out text"] = lm.perplexity(heldout_sentences(corpus))
        if old_text is not None:
            texts = read_texts(old_text, split=corpus.tokenizer.language)
            found["old text"] = lm.perplexity(text for text in texts if text)
        return found


def _check_paths(out: Path, *, resume: bool, old_text: str | Path | None) -> None:
    """Raise now what would otherwise be raised after hours."""
    training, is_model = out / "training", (out / "config.json").exists()
    begun = any(Checkpoints(folder).exist for folder in (training, training / "softmax"))
    if (begun or is_model) and not resume:
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


def _preparation(
    sources: Sequence[str | Path], options: Mapping[str, Any], start: ModelBundle | None
) -> PrepareSettings | None:
    """Return the settings for raw text; defaults are those of the model that is trained further."""
    if len(sources) == 1 and is_prepared(sources[0]):
        if options:
            given = ", ".join(f"{name}={value!r}" for name, value in options.items())
            raise ConfigError(
                f"{sources[0]} is prepared already; leave out {given}, or prepare the text again"
            )
        return None
    if start is not None:
        spec = start.tokenizer
        options = {"lowercase": spec.lowercase, **options}
        if not options.keys() & {"language", "tokenizer"}:
            options |= {"tokenizer": spec.name, "language": spec.language}
    return PrepareSettings.from_options(options)


def _open_corpus(
    sources: Sequence[str | Path],
    training: Path,
    settings: PrepareSettings | None,
    start: ModelBundle | None,
    workers: int | None,
    processes: Processes,
) -> PreparedCorpus:
    """Return the prepared corpus; the leading process prepares it where that is not done yet."""
    given = None if start is None else bound_vocabulary(start)
    if settings is None:
        corpus = PreparedCorpus(sources[0])
    else:
        if processes.leads:
            if given is not None:
                training.mkdir(parents=True, exist_ok=True)
                given.save(training / "vocab.txt")
                settings = replace(settings, vocabulary=training / "vocab.txt")
            prepare_corpus(sources, training / "corpus", settings, workers=workers)
        processes.wait()
        corpus = PreparedCorpus(training / "corpus")
    if start is not None and given is not None and corpus.vocabulary.tokens != given.tokens:
        raise ConfigError(
            f"{corpus.path} was prepared with another vocabulary than that of {start.source}; prepare it "
            "with the model's (vocabulary='vocab.txt'), or pass the raw text"
        )
    if start is not None and start.tokenizer.lowercase and not corpus.tokenizer.lowercase:
        raise ConfigError(
            f"{start.source} was trained on text in lower case, {corpus.path} has its capitals; prepare it "
            "with lowercase=True"
        )
    return corpus


def _write_model(run: _Run, out: Path, card: str, *, hdf5: bool) -> None:
    """Write the model, its card and its learning curve."""
    softmax, corpus = run.table.export(), run.corpus
    bundle = ModelBundle(
        model=run.model.eval(),
        tokenizer=corpus.tokenizer,
        vocabulary=corpus.vocabulary,
        softmax=SoftmaxFile(len(corpus.vocabulary), lambda: softmax),
        source=str(out),
        card=card,
    )
    draft = run.folder / "model"
    shutil.rmtree(draft, ignore_errors=True)
    save_model(bundle, draft)
    move_files(draft, out)
    if hdf5:
        shutil.rmtree(out / "hdf5", ignore_errors=True)
        save_model(bundle, out / "hdf5", format="hdf5")
    try:
        draw_curve(run.folder, out / "curve.png")
    except MissingExtra as missing:
        run.display.say(str(missing))
