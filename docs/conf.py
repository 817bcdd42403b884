"""Settings of the documentation site. `make docs` builds it into build/docs and runs its examples."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

import elmokit

project = "elmokit"
author = "The elmokit authors"
version = release = elmokit.__version__
html_title = "elmokit"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
nitpicky = True
# Nothing is fetched while building, so only references within elmokit can be resolved.
nitpick_ignore_regex = [("py:.*", r"(?!elmokit\.).*")]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "literal"  # docstrings write `code` as Markdown does
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 90

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_copyright = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00629b", "color-brand-content": "#00629b"},
    "dark_css_variables": {"color-brand-primary": "#6cb8e6", "color-brand-content": "#6cb8e6"},
}


def write_inline_math(translator: Any, node: nodes.math) -> None:  # noqa: ANN401 (Sphinx's translator)
    """Write a formula of a line of text as MathML, which browsers show without a script."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block_math(translator: Any, node: nodes.math_block) -> None:  # noqa: ANN401 (Sphinx's translator)
    """Write a formula that stands by itself as MathML."""
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def keep_equations(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Show indented blocks of docstrings, which hold equations and diagrams, line by line."""
    for number in range(len(lines) - 2, 0, -1):
        before, blank, after = lines[number - 1 : number + 2]
        deeper = len(after) - len(after.lstrip()) > len(before) - len(before.lstrip())
        if before.strip() and not blank.strip() and deeper and not re.match(r"\s*(\.\. |:|- )", before):
            lines[number - 1 : number] = [before, "", "::"] if not before.endswith("::") else [before]


def setup(app: Sphinx) -> None:
    """Register the formulas and the equations of docstrings."""
    app.add_html_math_renderer("mathml", (write_inline_math, None), (write_block_math, None))
    app.connect("autodoc-process-docstring", keep_equations, priority=400)
