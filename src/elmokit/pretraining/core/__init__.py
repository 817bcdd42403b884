"""What the pretraining of every architecture shares.

recipe_choice    a recipe by name, size and changes
run_record       what a run was started with, so that it can be resumed
prepared_text    the text of a run, prepared if it is not yet
card_parts       what the model cards of all architectures say
run_session      locks, processes, progress and interruption around a run
"""

from elmokit.pretraining.core.card_parts import data_lines, training_lines
from elmokit.pretraining.core.prepared_text import check_places, open_corpus
from elmokit.pretraining.core.recipe_choice import AnyRecipe, RecipeChoice, differing_settings
from elmokit.pretraining.core.run_record import SOFTMAX_SHARE, RunRecord, pretraining_summary, settle_record
from elmokit.pretraining.core.run_session import Session, run_session

__all__ = [
    "SOFTMAX_SHARE", "AnyRecipe", "RecipeChoice", "RunRecord", "Session", "check_places",
    "data_lines", "differing_settings", "open_corpus", "pretraining_summary", "run_session", "settle_record",
    "training_lines",
]  # fmt: skip
