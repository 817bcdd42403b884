import pytest

from elmokit import ConfigError
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.core.recipe_choice import RecipeChoice


def choice(**changes):
    return RecipeChoice(Recipe, None, None, changes)


def test_a_part_is_changed_by_a_dict_and_the_rest_of_it_stays():
    base = Recipe()
    changed = choice(batch=7, model={"cell_dim": 24}).made_of(base)
    assert (changed.batch, changed.model.cell_dim) == (7, 24)
    assert changed.model.projection_dim == base.model.projection_dim
    assert changed.model.encoder == base.model.encoder


def test_an_unknown_setting_of_a_part_is_named():
    with pytest.raises(ConfigError, match="model: unknown setting 'cel_dim'; did you mean 'cell_dim'"):
        choice(model={"cel_dim": 3}).made_of(Recipe())
