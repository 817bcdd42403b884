"""Settings of the documentation site. `make docs` builds it into build/docs and runs its examples."""

import re
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from docutils import nodes
from matplotlib import rc_context
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

import elmokit

project = "elmokit"
author = "The elmokit authors"
version = release = elmokit.__version__
html_title = "elmokit"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
nitpicky = True
suppress_warnings = ["ref.python"]  # two classes are called Embedder
# Nothing is fetched while building, so types of other libraries have no link; nor have elmokit's inner types.
nitpick_ignore_regex = [("py:.*", r"(?!elmokit\.).*"), ("py:.*", r"elmokit\.\w+\..*")]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "literal"  # docstrings write `code` as Markdown does
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_mock_imports = ["dask", "pyspark", "ray"]  # large, and not in the environment that builds the site
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 90

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_copyright = False
html_math_renderer = "svg"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00629b", "color-brand-content": "#00629b"},
    "dark_css_variables": {"color-brand-primary": "#6cb8e6", "color-brand-content": "#6cb8e6"},
}


def formula(tex: str, *, points_of_em: float) -> str:
    """Draw a formula as SVG in the colour of the text: it needs no script, no font and no network."""
    file = BytesIO()
    with rc_context({"svg.hashsalt": "elmokit", "mathtext.fontset": "cm"}):
        depth = math_to_image(f"${' '.join(tex.split())}$", file, prop=FontProperties(size=12), format="svg")
    svg = file.getvalue().decode()
    svg = svg[svg.index("<svg") :].strip().replace("#000000", "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r'(width|height)="([\d.]+)pt"', lambda m: f'{m[1]}="{float(m[2]) / points_of_em:.3f}em"', svg
    )
    label, shift = escape(tex, quote=True), -depth / points_of_em
    style = f'style="vertical-align: {shift:.3f}em" role="img" aria-label="{label}"'
    return svg.replace("<svg", f"<svg {style}", 1)


def write_inline_math(translator: Any, node: nodes.math) -> None:  # noqa: ANN401 (Sphinx's translator)
    """Write a formula within a line of text."""
    translator.body.append(formula(node.astext(), points_of_em=10.5))
    raise nodes.SkipNode


def write_block_math(translator: Any, node: nodes.math_block) -> None:  # noqa: ANN401 (Sphinx's translator)
    """Write a formula that stands by itself."""
    translator.body.append(f'<div class="math">{formula(node.astext(), points_of_em=9.5)}</div>\n')
    raise nodes.SkipNode


def keep_equations(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Show indented blocks of docstrings, which hold equations and diagrams, line by line."""
    for number in range(len(lines) - 2, 0, -1):
        before, blank, after = lines[number - 1 : number + 2]
        deeper = len(after) - len(after.lstrip()) > len(before) - len(before.lstrip())
        if before.strip() and not blank.strip() and deeper and not re.match(r"\s*(\.\. |:|- )", before):
            lines[number - 1 : number] = [before, "", "::"] if not before.endswith("::") else [before]


def find_public_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Link a type that a signature names by its module, or by its bare name, to its public name."""
    name = node.get("reftarget", "").rpartition(".")[2]
    if node.get("refdomain") != "py" or name not in elmokit.__all__:
        return None
    domain = env.domains["py"]
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", f"elmokit.{name}", node, content)


class CourseSection(SphinxDirective):
    """A section of a chapter's script and what it printed, on the page of that chapter.

    The name is given as `{section} counting words`; the number of the chapter begins the name of the page.
    The section lies between the line `# --- counting words` and the next such line (see course/run.py).
    """

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the code, and below it the output if there is any."""
        course = Path(self.env.srcdir) / "course"
        chapter = f"chapter_{self.env.docname.rpartition('/')[2][:2]}"
        shown = []
        for file, language in [(f"code/{chapter}.py", "python"), (f"output/{chapter}.txt", "text")]:
            self.env.note_dependency(str(course / file))
            parts = re.split(r"^# --- (.+)$", (course / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
            texts = dict(zip(parts[1::2], parts[2::2], strict=True))
            if self.arguments[0] not in texts:
                raise self.error(f"{file} has no section {self.arguments[0]!r}, only {list(texts)}")
            if text := texts[self.arguments[0]].strip("\n"):
                shown.append(
                    nodes.literal_block(text, text, language=language, classes=[f"course-{language}"])
                )
        return shown


def setup(app: Sphinx) -> None:
    """Register formulas, sections of the course, equations of docstrings, and links to public names."""
    app.add_directive("section", CourseSection)
    app.connect("missing-reference", find_public_name)
    app.add_html_math_renderer("svg", (write_inline_math, None), (write_block_math, None))
    app.connect("autodoc-process-docstring", keep_equations, priority=400)
