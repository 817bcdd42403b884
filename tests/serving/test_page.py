"""The page in a real browser: each view is opened, used, and saved from."""

import io
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import elmokit
from tests.serving.conftest import running
from tests.task_data import WRITERS, quick_settings

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"
)
playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")
def task_folders(tagger_folder, tmp_path_factory):
    """A trained model of every kind of task."""
    folders = {"tagger": tagger_folder}
    for kind in WRITERS.keys() - folders:
        folder = tmp_path_factory.mktemp(kind)
        for part in ("train", "dev"):
            WRITERS[kind](folder, part)
        settings = quick_settings(kind, "training.epochs=2")
        elmokit.train(kind, folder, encoder="chars", out=folder / "out", settings=settings)
        folders[kind] = folder / "out"
    return folders


@pytest.fixture(scope="module")
def site(task_folders):
    tasks = (("--task", f"{kind}={folder}") for kind, folder in task_folders.items())
    with running("--model", "en", *(word for option in tasks for word in option)) as server:
        yield server.url


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, site):
    """A page that must not write errors to the console or ask another host."""
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 900})
    page, faults = context.new_page(), []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith((site, "data:", "blob:")) else faults.append(asked.url),
    )
    page.set_default_timeout(60_000)
    yield page
    context.close()
    assert faults == []


def saved(page, kind, number=0):
    with page.expect_download() as download:
        page.get_by_role("button", name=kind, exact=True).nth(number).click()
    return download.value.path().read_bytes()


def test_polysemy(page, site):
    page.goto(f"{site}/")
    page.get_by_text("Nearest to the chosen use").wait_for()
    page.get_by_label("Word", exact=True).fill("spring")
    page.get_by_label("Sentences").fill(
        "In spring snow melts.\nThe spring in the clock broke.\nSpring has come."
    )
    page.get_by_role("button", name="Show", exact=True).click()
    points = page.locator("svg [role=button]")
    playwright.expect(points).to_have_count(3)
    assert "word=spring" in page.url
    slider = page.get_by_role("slider", name="Layer")
    slider.fill("0")
    playwright.expect(page.get_by_role("heading", name="The uses at layer 0")).to_be_visible()
    assert len({points.nth(n).get_attribute("transform") for n in (0, 1)}) == 1  # layer 0 knows no context
    slider.fill("2")
    assert len({points.nth(n).get_attribute("transform") for n in range(3)}) == 3
    points.nth(0).focus()
    page.keyboard.press("ArrowRight")
    playwright.expect(points.nth(1)).to_be_focused()
    playwright.expect(page.locator("ol.uses li.self")).to_contain_text("The spring in the clock broke.")
    box = points.nth(2).locator("circle").bounding_box()
    before = points.nth(2).get_attribute("transform")
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 40)
    page.mouse.up()
    assert points.nth(2).get_attribute("transform") != before
    assert saved(page, "PNG").startswith(b"\x89PNG")
    assert saved(page, "SVG").startswith(b"<svg")
    assert b"In spring snow melts." in saved(page, "CSV")


def test_a_link_shows_the_same(page, site):
    page.goto(f"{site}/#polysemy?word=cat&texts=A+cat+sat.%0AThe+cat+ran.&layer=1")
    playwright.expect(page.locator("svg [role=button]")).to_have_count(2)
    playwright.expect(page.get_by_role("heading", name="The uses at layer 1")).to_be_visible()


def test_layers(page, site):
    page.goto(f"{site}/#layers?text=The+bank+of+the+river.")
    shares = page.locator(".meter .value")
    playwright.expect(shares).to_have_text(["33 %", "33 %", "33 %"])
    page.get_by_label("w₂").fill("5")
    playwright.expect(shares.nth(2)).to_have_text("99 %")
    assert "w=0%2C0%2C5" in page.url
    page.get_by_label("Compare with").select_option("1")
    playwright.expect(page.get_by_role("heading", name="How alike each word is to “bank”")).to_be_visible()
    assert saved(page, "CSV").decode("utf-8-sig").startswith(",The,bank,of,the,river,.")


def test_language_model(page, site):
    page.goto(f"{site}/#language?text=The+cat+sat.")
    playwright.expect(page.locator(".word")).to_have_count(4)
    picture = saved(page, "SVG").decode()
    assert [f">{word}<" in picture for word in ("The", "cat", "dog")] == [True, True, False]
    assert "word,bits,forward_log" in saved(page, "CSV").decode()
    page.get_by_label("Sentence with [MASK]").fill("the [MASK] of the [MASK]")
    page.get_by_role("button", name="Show").nth(1).click()
    playwright.expect(page.get_by_text("Gap 2")).to_be_visible()
    page.get_by_label("Beginning").fill("The president")
    page.get_by_role("button", name="Write").click()
    playwright.expect(page.locator(".said")).to_contain_text("The president")


def test_tasks(page, site):
    page.goto(f"{site}/#tasks?task=tagger&text=Ada+saw+Paris+.")
    playwright.expect(page.locator(".said .span")).to_have_text(["AdaPER", "ParisLOC"])
    assert "Ada,0,3" in saved(page, "CSV").decode()
    assert saved(page, "PNG").startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", WRITERS)
def test_every_kind_of_task_is_drawn(page, site, kind):
    page.goto(f"{site}/#tasks")
    page.locator("form select").select_option(kind)
    playwright.expect(page.get_by_role("heading", level=2)).to_have_text(kind)
    playwright.expect(page.locator(".found article").first).to_be_visible()
    assert page.locator(".found pre").count() == 0  # nothing is shown as bare data
    assert page.locator(".found .meter").count() == 0 or page.locator(".found .value").first.text_content()
    assert f"task={kind}" in page.url
    assert b"<text" in saved(page, "SVG")


def test_mentions_may_lie_inside_each_other(page, site):
    mentions = [(0, 17, 1), (4, 7, 2), (22, 25, 2)]
    spans = [{"text": "", "start": a, "end": b, "probability": 1} for a, b, _ in mentions]
    text = "the cat \U0001f408 's tail and her"  # places count the cat as one letter
    found = {"text": text, "sentences": [], "clusters": [spans[:1], spans[1:]]}
    page.route("**/v1/predict/*", lambda route: route.fulfill(json={"data": [found]}))
    page.goto(f"{site}/#tasks?task=coreference")
    shown = page.locator(".said .span")
    playwright.expect(shown).to_have_text(["the cat2 \U0001f408 's tail1", "cat2", "her2"])


def test_corpus(page, site, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The bank of the river.\nA cat sat.\nThe bank raised its rates.\n" * 3)
    page.goto(f"{site}/#corpus")
    page.locator("input[type=file]").set_input_files(text)
    page.get_by_text("text.txt: 9 lines").wait_for()
    page.get_by_label("Word", exact=True).fill("bank")
    with page.expect_request("**/v1/uses") as asked:
        page.get_by_role("button", name="Show", exact=True).click()
    assert "cat" not in asked.value.post_data  # lines without the word stay in the browser
    playwright.expect(page.get_by_role("heading", name="6 uses")).to_be_visible()
    table = pq.read_table(io.BytesIO(saved(page, "Parquet for embedding-atlas")))
    assert table["text"][0].as_py() == "The bank of the river."
    x, y = (table[name].to_numpy() for name in ("x", "y"))
    assert np.isfinite(x).all()
    assert np.isfinite(y).all()


def test_what_is_missing_is_said(page, site):
    page.goto(f"{site}/#corpus")
    page.get_by_label("Word", exact=True).fill("bank")
    page.get_by_role("button", name="Show", exact=True).click()
    playwright.expect(page.get_by_role("status").last).to_have_text("Choose a text file first.")
    page.goto(f"{site}/#tasks?task=tagger")
    page.get_by_label("Text, one a line").fill(" ")
    page.get_by_role("button", name="Predict").click()
    playwright.expect(page.locator(".empty")).to_have_text("Type a text first.")


def test_with_the_keyboard_alone(page, site):
    page.goto(f"{site}/#layers?text=A+cat.")
    page.get_by_role("heading", name="Mix of the layers").wait_for()
    page.keyboard.press("Tab")
    playwright.expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    playwright.expect(page.locator("main")).to_be_focused()
    assert "#layers?" in page.url
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.ariaLabel") == "γ":
            break
    page.keyboard.press("ArrowRight")
    assert "gamma=1.05" in page.url


def test_chinese_dark_and_back(page, site):
    page.goto(f"{site}/#layers?text=A+cat.")
    page.get_by_role("button", name="中文").click()
    playwright.expect(page.get_by_role("heading", level=1)).to_have_text("每一层带来了什么")
    assert page.locator("html").get_attribute("lang") == "zh-Hans"
    page.get_by_role("button", name="深色").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.reload()
    playwright.expect(page.get_by_role("heading", level=1)).to_have_text("每一层带来了什么")
    assert page.locator("html").get_attribute("data-theme") == "dark"


@pytest.mark.parametrize("view", ["polysemy", "layers", "language", "tasks", "corpus"])
def test_a_phone_need_not_scroll_sideways(page, site, view):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{site}/#{view}")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_everything_that_can_be_used_has_a_name(page, site):
    for view in ("polysemy", "layers", "language", "tasks", "corpus"):
        page.goto(f"{site}/#{view}")
        page.wait_for_load_state("networkidle")
        for role in ("button", "textbox", "slider", "combobox", "checkbox", "link"):
            for element in page.get_by_role(role).all():
                name = element.evaluate(
                    "e => e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.textContent.trim()"
                )
                assert name, (view, role)


def test_documentation_of_the_routes(page, site):
    page.goto(f"{site}/docs")
    page.get_by_text("/v1/embeddings", exact=True).click()
    page.get_by_role("button", name="Send").first.click()
    playwright.expect(page.locator("pre").first).to_contain_text('"object":"list"')
