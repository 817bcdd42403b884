"""From raw text to a model folder: prepare, train, evaluate, write.

OUT/config.json, model.safetensors, vocab.txt, softmax.safetensors, README.md, curve.png    the model
OUT/training/corpus, checkpoints, metrics.jsonl                                             the run
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmokit.base import (
    move_files,
    remove_folder,
)
from elmokit.corpus import PreparedCorpus, PrepareSettings
from elmokit.errors import ConfigError, MissingExtra
from elmokit.formats import ModelBundle, SoftmaxFile, load_model, save_model
from elmokit.kernels import (
    training_engine_name,
    training_precision,
    whole_pieces,
)
from elmokit.language_model import LanguageModel, Perplexity
from elmokit.model import BiLM, FillWeights
from elmokit.pretraining.bilm.bilm_job import EVALUATED_TOKENS, BiLMJob, heldout_name, heldout_sentences
from elmokit.pretraining.bilm.model_card import PerplexityChange, draw_curve, model_card
from elmokit.pretraining.bilm.old_checkpoint import convert_old_checkpoints
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable
from elmokit.pretraining.bilm.start import bound_vocabulary, start_training
from elmokit.pretraining.core import (
    SOFTMAX_SHARE,
    RecipeChoice,
    RunRecord,
    Session,
    open_corpus,
    run_session,
    settle_record,
)
from elmokit.text import Vocabulary, read_texts
from elmokit.training import (
    Checkpoints,
    Loop,
    Plan,
    Position,
    Schedule,
    read_metrics,
)

_EXPLODED = 2.0  # above the usual loss: more than seven times the perplexity


def pretrain_bilm(
    sources: str | Path | Sequence[str | Path] | None = None,
    *,
    out: str | Path,
    minutes: float | None = None,
    tokens: int | None = None,
    epochs: float | None = None,
    language: str | None = None,
    preparation: PrepareSettings | Mapping[str, Any] | None = None,
    recipe: str | Path | Recipe | None = None,
    size: str | None = None,
    changes: Mapping[str, Any] | None = None,
    start: str | Path | None = None,
    grow: bool = False,
    old_text: str | Path | None = None,
    teacher: str | Path | None = None,
    architecture: str = "lstm",
    resume: bool = False,
    workers: int | None = None,
    device: str = "cpu",
    hdf5: bool = False,
    command: str = "",
    progress: bool = False,
) -> list[PerplexityChange]:
    """Train a biLM on text; the arguments are those of `pretrain`.

    Returns:
        The perplexities at the end. Of several processes only the leading one gets any.
    """
    texts = [] if sources is None else [sources] if isinstance(sources, str | Path) else list(sources)
    if not isinstance(preparation, PrepareSettings):
        preparation = dict(preparation or {}) | ({} if language is None else {"language": language})
    budget = {"minutes": minutes, "tokens": tokens, "epochs": epochs}
    given = {"start": start, "grow": grow, "old_text": old_text, "teacher": teacher}
    given |= {"hdf5": hdf5, "command": command, "architecture": architecture}
    if architecture != "lstm":
        _refuse_for_layers(architecture, teacher=teacher, grow=grow, hdf5=hdf5)
        recipe = architecture if recipe is None and not resume else recipe
    with run_session(out, device, resume=resume, progress=progress, old_text=old_text) as session:
        chosen = RecipeChoice(Recipe, recipe, size, changes or {})
        record, bundle = settle_record(
            *(session.folder, chosen, texts, preparation), resume=resume, budget=budget, given=given
        )
        if recipe is None and record.recipe.words and not resume:
            session.display.say(
                "text by character: the recipe 'characters' gives each character a vector of its own"
            )
        if record.recipe.model.layers != record.architecture:
            raise ConfigError(
                f'the recipe has layers = "{record.recipe.model.layers}", the architecture is '
                f"{record.architecture}; choose the same in both"
            )
        imitated = None if record.teacher is None else load_model(record.teacher)  # before the long work
        vocabulary = None if bundle is None or record.grow else bound_vocabulary(bundle)
        corpus = open_corpus(
            *(record, session.folder, session.processes),
            workers=workers,
            again=bool(texts),
            vocabulary=vocabulary,
        )
        _check_start(bundle, vocabulary, corpus)
        if session.processes.leads:
            record.save(session.folder)
        return _Run.start(record, corpus, bundle, session, imitated).complete(bundle)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What all phases of a run share."""

    model: BiLM
    table: SoftmaxTable
    corpus: PreparedCorpus
    record: RunRecord
    teacher: ModelBundle | None
    session: Session

    @classmethod
    def start(
        cls,
        record: RunRecord,
        corpus: PreparedCorpus,
        bundle: ModelBundle | None,
        session: Session,
        teacher: ModelBundle | None,
    ) -> "_Run":
        """Make the model, or take that of the bundle."""
        model, table, recipe = start_training(record.recipe, corpus, bundle, grow=record.grow)
        return cls(
            model=model.to(session.device),
            table=table.to(session.device),
            corpus=corpus,
            record=replace(record, recipe=recipe),
            teacher=teacher,
            session=session,
        )

    @property
    def folder(self) -> Path:
        return self.session.folder

    def complete(self, start: ModelBundle | None) -> list[PerplexityChange]:
        """Train to the end, evaluate and write the model."""
        fitted = start is not None and start.softmax is None
        if fitted:
            self._fit_softmax()
        before = self._evaluate() if start is not None and self.session.processes.leads else {}
        loop = self._train(self.folder, done=SOFTMAX_SHARE if fitted else 0.0, until=1.0)
        if not self.session.processes.leads:
            return []
        after = self._evaluate()
        changes = [PerplexityChange(text, before.get(text), found) for text, found in after.items()]
        self._write_model(loop.position, 1.0, changes)
        return changes

    def _train(self, folder: Path, *, done: float, until: float, frozen: bool = False) -> Loop:
        """Train for a part of the budget; raise KeyboardInterrupt if stopped before its end."""
        loop = self._loop(folder, until - done, frozen=frozen)

        def write_unfinished() -> None:
            progress = done + (until - done) * loop.progress
            self._write_model(loop.position, progress, self._last_measured())

        # The job works on two threads of its own; between their work there are only short operations, for
        # which torch's threads would spin.
        with whole_pieces():
            self.session.train(loop, write_unfinished)
        return loop

    def _fit_softmax(self) -> None:
        """Train a softmax for a model that came without one, once."""
        folder = self.folder / "softmax"
        if Checkpoints(self.folder).exist:
            self._loop(folder, SOFTMAX_SHARE, frozen=True).state.restore()
        else:
            self.session.display.say(
                "the model has no softmax: one is fitted first, with the rest left as it is"
            )
            self._train(folder, done=0.0, until=SOFTMAX_SHARE, frozen=True)

    def _loop(self, folder: Path, share: float, *, frozen: bool) -> Loop:
        recipe = self.record.recipe
        convert_old_checkpoints(folder)
        precision = training_precision(self.table.weight.device.type)
        job = BiLMJob(
            *(self.model, self.table, self.corpus, recipe),
            processes=self.session.processes,
            precision=precision,
            frozen=frozen,
            teacher=None if frozen else self.teacher,
        )
        schedule = Schedule(peak=recipe.learning_rate, warmup=recipe.warmup, decay=recipe.decay)
        plan = Plan(budget=self.record.budget.part(share), schedule=schedule, exploded=_EXPLODED)
        settings = recipe.to_dict() | {"corpus": self.corpus.fingerprint}
        if self.record.teacher is not None:
            settings["teacher"] = self.record.teacher
        return Loop(
            *(job, folder, plan),
            settings=settings,
            processes=self.session.processes,
            engine=training_engine_name(precision, self.table.weight),
            say=self.session.display.say,
        )

    def _language_model(self) -> LanguageModel:
        corpus = self.corpus
        return LanguageModel(self.model, self.table.export(), corpus.vocabulary, corpus.tokenizer)

    def _fill_weights(self) -> FillWeights | None:
        """Fit on the held-out text how the directions are combined to fill a gap."""
        if not self.corpus.heldout:
            return None
        return self._language_model().fit_fill(heldout_sentences(self.corpus))

    def _evaluate(self) -> dict[str, Perplexity]:
        """Measure the perplexity of the held-out text, and of the old domain's where it was given.

        Of a long held-out text, also that of the part which the learning curve shows.
        """
        corpus, old_text = self.corpus, self.record.old_text
        lm = self._language_model()
        found = {}
        if corpus.heldout:
            found["held-out text"] = lm.perplexity(heldout_sentences(corpus))
            if heldout_name(corpus) not in found:
                part = heldout_sentences(corpus, EVALUATED_TOKENS)
                found[heldout_name(corpus)] = lm.perplexity(part)
        if old_text is not None:
            texts = read_texts(old_text, split=corpus.tokenizer.language)
            found["old text"] = lm.perplexity(text for text in texts if text)
        return found

    def _last_measured(self) -> list[PerplexityChange]:
        """Return what the last evaluation during training has found."""
        found = [record["heldout"] for record in read_metrics(self.folder) if "heldout" in record]
        name = heldout_name(self.corpus)
        return [PerplexityChange(name, None, Perplexity(**found[-1]))] if found else []

    def _write_model(self, at: Position, progress: float, changes: list[PerplexityChange]) -> None:
        """Write the model, its card and its learning curve."""
        softmax, corpus = self.table.export(), self.corpus
        bundle = ModelBundle(
            model=self.model.eval(),
            tokenizer=corpus.tokenizer,
            vocabulary=corpus.vocabulary,
            softmax=SoftmaxFile(len(corpus.vocabulary), lambda: softmax),
            source=str(self.session.out),
            card=model_card(
                *(self.session.out.name, self.model, corpus, self.record),
                position=at,
                progress=progress,
                changes=changes,
            ),
            # It takes a while, for which a user who has pressed Ctrl-C should not wait.
            fill_weights=None if progress < 1 else self._fill_weights(),
        )
        draft = self.folder / "model"
        remove_folder(draft)
        save_model(bundle, draft)
        move_files(draft, self.session.out, last="config.json")
        if self.record.hdf5:
            remove_folder(self.session.out / "hdf5")
            save_model(bundle, self.session.out / "hdf5", format="hdf5")
        measured = heldout_name(corpus)
        found = [change.after for change in changes if progress >= 1 and change.text == measured]
        end = (at.tokens, found[0]) if found else None
        try:
            draw_curve(self.folder, self.session.out / "curve.png", measured, end)
        except MissingExtra as missing:
            self.session.display.say(str(missing))


def _refuse_for_layers(architecture: str, **given: object) -> None:
    for name, value in given.items():
        if value:
            raise ConfigError(f"{name} is for LSTM layers; leave it out with architecture={architecture!r}")


def _check_start(start: ModelBundle | None, given: Vocabulary | None, corpus: PreparedCorpus) -> None:
    """Check that a corpus fits the model that is trained further."""
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
