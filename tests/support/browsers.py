"""A page in the Chromium of the machine, never in one of Playwright's own.

Whatever is done to a page, no request leaves it and nothing is complained of: `opened` holds every
test to that.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
WIDE, NARROW, NARROWEST = 1400, 500, 320  # the last is 1280 at a zoom of 400 %, as WCAG 1.4.10 asks
HEIGHT = 800
AA_TEXT = 4.5  # WCAG 1.4.3
type Scheme = Literal["light", "dark"]
type Colour = tuple[float, float, float]
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

looked = subprocess.run(
    [ROOT / "infra" / "local" / "browser.sh", "--path"], capture_output=True, text=True, check=False
)


@contextmanager
def launched() -> Iterator[Browser]:
    """Give a browser with a profile of its own.

    Its sandbox is off, as Playwright has it: root cannot use it, nor can many a container, and the
    pages are ours.
    """
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=looked.stdout.strip(), args=QUIET)
        yield chromium
        chromium.close()


@contextmanager
def opened(
    browser: Browser, html: Path, *, width: int = WIDE, height: int = HEIGHT, **options: Any
) -> Iterator[Page]:
    """Open a page, and see that it asked for nothing and complained of nothing."""
    asked: list[str] = []
    complaints: list[str] = []
    with browser.new_context(viewport={"width": width, "height": height}, **options) as context:
        context.on("request", lambda request: asked.append(request.url))
        context.on("console", lambda message: complaints.append(message.text))
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        page = context.new_page()
        page.goto(html.as_uri())
        yield page
        assert asked == [html.as_uri()]
        assert complaints == []  # an error in a script, or something that the page's policy refused


TEXTS = """(root) => {
  const known = new Map();  // a page has far fewer elements than samples
  const once = (e, key, make) => {
    const own = known.get(e) ?? known.set(e, {}).get(e);
    return own[key] ??= make();
  };
  const opacity = (e) => e ? once(e, "opacity", () =>
    getComputedStyle(e).opacity * opacity(e.parentElement)) : 1;
  const ground = (e) => once(e, "ground", () => {
    const style = getComputedStyle(e);
    if (!(e instanceof SVGElement)) return style.backgroundColor;
    if (e instanceof SVGSVGElement) return "rgba(0, 0, 0, 0)";
    const [, pattern] = style.fill.match(/url\\("(#.+)"\\)/) ?? [];
    if (pattern) return getComputedStyle(document.querySelector(`${pattern} path`)).stroke;
    return style.fill === "none" ? style.stroke : style.fill;
  });
  const shown = (node) => node instanceof Text || node.getBoundingClientRect().width > 1
    ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
  const walker = document.createTreeWalker(
    root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, shown);
  const kind = (e) => e ? `${kind(e.parentElement)}>${e.tagName}.${e.className}` : "";
  const counted = new Map(), found = new Map();
  for (let node; (node = walker.nextNode()); ) {
    if (!(node instanceof Text) || !node.data.trim()) continue;
    const own = node.parentElement, like = kind(own), before = counted.get(like) ?? 0;
    if (before === 8) continue;  // enough of a kind
    counted.set(like, before + 1);
    const {top, bottom} = own.getBoundingClientRect();
    if (top < 60 || bottom > innerHeight) own.scrollIntoView();
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const {x, y, width, height} of range.getClientRects())
      for (const share of [0.05, 0.95]) {
        const stack = document.elementsFromPoint(x + width * share, y + height / 2);
        const at = stack.indexOf(own);
        if (at < 0) continue;  // scrolled out of a table
        const grounds = stack.slice(at).reverse().map((e) => [ground(e), opacity(e)]);
        const seen = [getComputedStyle(own).color, opacity(own), grounds];
        found.set(JSON.stringify(seen), [node.data.trim(), ...seen]);
      }
  }
  return [...found.values()];
}"""
"""Some texts of each kind, with colour and opacity, and all that is painted below, lowest first.

A filling with a pattern counts as if it were all of the pattern's colour.
"""


def parsed(colour: str) -> tuple[Colour, float]:
    red, green, blue, *alpha = (float(part) for part in re.findall(r"[\d.]+", colour))
    return (red, green, blue), alpha[0] if alpha else 1.0


def painted(colour: str, opacity: float, ground: Colour) -> Colour:
    (red, green, blue), alpha = parsed(colour)
    share = alpha * opacity
    return (
        share * red + (1 - share) * ground[0],
        share * green + (1 - share) * ground[1],
        share * blue + (1 - share) * ground[2],
    )


def contrast(one: Colour, other: Colour) -> float:
    """Source: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: Colour) -> float:
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in (part / 255 for part in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def text_contrasts(page: Page, root: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for text, colour, opacity, grounds in page.locator(root).first.evaluate(TEXTS):
        ground = (255.0, 255.0, 255.0)
        for layer, share in grounds:
            ground = painted(layer, share, ground)
        ratio = contrast(painted(colour, opacity, ground), ground)
        found[text] = min(ratio, found.get(text, ratio))
    return found
