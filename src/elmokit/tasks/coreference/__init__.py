"""Coreference: which words of a document mean the same person or thing."""

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.errors import DataError
from elmokit.tasks.core import Decision, Scores, TaskModel, TextInput
from elmokit.tasks.coreference.data import FORMATS, CorefDocument, Question
from elmokit.tasks.coreference.head import (
    CoreferenceHead,
    CoreferenceHeadSettings,
    CoreferenceSettings,
    LinkedMentions,
)
from elmokit.tasks.coreference.prediction import (
    CoreferencePrediction,
    DocumentInput,
    FoundMention,
    link_decisions,
    present_clusters,
)
from elmokit.tasks.coreference.scores import Clusters, score_clusters, score_questions, scores_of
from elmokit.text import Run

__all__ = [
    "CorefDocument", "CoreferenceHead", "CoreferenceHeadSettings", "CoreferenceModel",
    "CoreferencePrediction", "CoreferenceSettings", "CoreferenceTask", "DocumentInput", "FoundMention",
    "LinkedMentions", "Question", "score_clusters", "score_questions",
]  # fmt: skip

_SINGLETONS = 0.05  # the share of clusters with one mention from which on these belong to the annotation


@dataclass(frozen=True)
class CoreferenceTask:
    """Coreference; see `Task`.

    Attributes:
        settings: of encoders, head and training.
        singletons: whether mentions without others are clusters, too, as in the training data.
    """

    name = "coreference"
    formats = FORMATS
    read_input = staticmethod(DocumentInput.read)
    settings_type = CoreferenceSettings
    reads_documents = True

    settings: CoreferenceSettings
    singletons: bool = False

    @classmethod
    def fit(
        cls, settings: CoreferenceSettings, examples: Sequence[CorefDocument]
    ) -> tuple["CoreferenceTask", list[CorefDocument]]:
        """Find out whether the training data have clusters of one mention."""
        clusters = [cluster for example in examples for cluster in example.clusters]
        if not clusters and all(example.question is None for example in examples):
            raise DataError(f"{examples[0].where}: no document has a mention, so there is nothing to learn")
        single = sum(len(cluster) == 1 for cluster in clusters)
        return cls(settings, single > _SINGLETONS * len(clusters)), list(examples)

    def prepare(self, examples: Sequence[CorefDocument], *, allow_unseen: bool) -> list[CorefDocument]:
        """Return the documents as they are: there are no labels."""
        return list(examples)

    def make_head(self, dim: int, examples: Sequence[CorefDocument] = ()) -> CoreferenceHead:
        """Build the head that finds and links mentions."""
        return CoreferenceHead(dim, self.settings.head, singletons=self.singletons)

    def score(
        self, examples: Sequence[CorefDocument], outputs: Sequence[LinkedMentions], *, strict: bool = False
    ) -> Scores:
        """Return MUC, B³, CEAFφ4 and their mean; for the questions of GAP, F1 over pairs."""
        return scores_of(examples, [one.clusters for one in outputs], [one.chosen for one in outputs])

    def describe(self, example: CorefDocument, output: LinkedMentions) -> tuple[str, str]:
        """Return the true and the predicted clusters, or answers."""
        tokens = example.tokens
        if example.question is None:
            return _in_words(tokens, example.clusters), _in_words(tokens, output.clusters)
        pronoun, candidates = example.question.pronoun, example.question.candidates
        true, chosen = (
            [[pronoun, *(one for one, yes in zip(candidates, answers, strict=True) if yes)]]
            for answers in (example.question.answers, output.chosen)
        )
        return _in_words(tokens, true), _in_words(tokens, chosen)

    def present(self, item: DocumentInput, output: LinkedMentions) -> CoreferencePrediction:
        """Return the clusters with the places of their mentions in the text."""
        return present_clusters(item, output)

    def parts(self, item: DocumentInput) -> list[TextInput]:
        """Return the document."""
        return [TextInput(item.text, [token for sentence in item.sentences for token in sentence])]

    def decisions(
        self, item: DocumentInput, output: LinkedMentions, *, label: str | None, at: Run | None
    ) -> list[Decision]:
        """Return the links of mentions to those before them, or one that is asked for by its words."""
        return link_decisions(item, output, label=label, at=at)

    def labelled(self, example: CorefDocument) -> list[tuple[str, Run | None]]:
        """Return the mentions, each with the name of its cluster."""
        tokens = example.tokens
        return [
            (" ".join(tokens[slice(*cluster[0])]), mention)
            for cluster in example.clusters
            for mention in cluster
        ]


def _in_words(tokens: Sequence[str], clusters: Clusters) -> str:
    return " || ".join(
        " | ".join(f"{' '.join(tokens[start:end])}@{start}" for start, end in sorted(cluster))
        for cluster in sorted(map(sorted, clusters))
    )


class CoreferenceModel(TaskModel[CorefDocument, LinkedMentions, CoreferencePrediction]):
    """A model that finds the mentions of a document and links those that mean the same.

    Example:
        >>> text = "Ada wrote to Charles. She sent him her notes."
        >>> print(CoreferenceModel.load("coref").predict(text))                         # doctest: +SKIP
        [1 Ada] wrote to [2 Charles]. [1 She] sent [2 him] [1 her] notes.
    """

    task_type = CoreferenceTask


MODEL = CoreferenceModel
