"""Make the pictures of the page in guides/serve.md, with a server that runs and Debian's chromium.

    elmokit serve -m en -m zh --task ner=FOLDER
    python docs/draw_page.py http://127.0.0.1:8000 TEXT      # a text file in which "bank" stands often

Chinese needs a font, such as Debian's fonts-noto-cjk.
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

PICTURES = Path(__file__).with_name("pictures")
WIDE, PHONE = (1280, 800), (390, 844)


def take(browser: Browser, url: str, name: str, *, language: str = "en-US", theme: str = "light") -> Page:
    """Open a view; the picture is taken by `save`."""
    width, height = PHONE if name == "phone" else WIDE
    page = browser.new_page(
        locale=language,
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": width, "height": height},
    )
    page.goto(url)
    return page


def save(page: Page, name: str) -> None:
    """Wait until everything is there, and write the picture."""
    page.wait_for_load_state("networkidle")
    page.wait_for_function("!document.querySelector('.busy')")
    page.evaluate("document.activeElement.blur()")
    if name == "phone":
        page.evaluate("scrollTo(0, 660)")
    page.screenshot(path=PICTURES / f"serve-{name}.png", full_page=name != "phone")
    page.close()


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of the server")
    parser.add_argument("text", type=Path)
    arguments = parser.parse_args()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name in ("polysemy", "layers", "language", "tasks"):
            save(take(browser, f"{arguments.url}/#{name}", name), name)
        chinese = f"{arguments.url}/#polysemy?model=zh"
        save(take(browser, chinese, "polysemy-zh", language="zh-CN", theme="dark"), "polysemy-zh")
        save(take(browser, f"{arguments.url}/#polysemy", "phone"), "phone")
        corpus = take(browser, f"{arguments.url}/#corpus", "corpus")
        corpus.locator("input[type=file]").set_input_files(arguments.text)
        corpus.get_by_label("Word", exact=True).fill("bank")
        corpus.get_by_role("button", name="Show", exact=True).click()
        corpus.locator("ol.uses li").first.wait_for()
        save(corpus, "corpus")
        browser.close()


if __name__ == "__main__":
    main()
