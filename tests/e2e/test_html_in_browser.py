"""The page about a drill in a real browser, where Debian's Chromium is installed.

The browser is driven by its command line alone. It shows what it made of the page: the tree after
its scripts ran, and pixels in light and in dark.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import zlib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "all-spot-at-once.yaml"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
HEIGHT = 800

pytestmark = pytest.mark.skipif(
    not os.access(CHROMIUM, os.X_OK),
    reason="needs a browser: apt-get install chromium",
)

LIGHT = "--blink-settings=preferredColorScheme=1"
DARK = "--blink-settings=preferredColorScheme=0"

PROBE = """
<script>
addEventListener("load", () => {
  const said = {};
  const visible = (e) => e.getBoundingClientRect().width > 20;
  const stops = [...document.querySelectorAll("a, button, summary")];
  said.stops = stops.length;
  said.reached = stops.filter((e) => { e.focus(); return document.activeElement === e; }).length;
  const marks = [...document.querySelectorAll("button.mark, button.why")];
  said.marks = marks.length;
  said.told = marks.filter((e) => { e.focus(); return visible(e.querySelector(".tip")); }).length;
  const last = marks.at(-1);
  document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", bubbles: true}));
  said.dismissed = !visible(last.querySelector(".tip"));
  last.blur();
  said.shut = marks.every((e) => !visible(e.querySelector(".tip")));
  const root = document.scrollingElement;
  said.sideways = root.scrollWidth > root.clientWidth;
  const tips = marks.map((e) => { e.focus(); return e.querySelector(".tip").getBoundingClientRect(); });
  said.outside = tips.filter((r) => r.left < 0 || r.right > innerWidth).length;
  dispatchEvent(new Event("beforeprint"));
  said.folded = document.querySelectorAll("details:not([open])").length;
  document.body.dataset.probe = JSON.stringify(said);
});
</script>
"""
"""Does what a person at a keyboard would do, and writes down what happened."""


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    result = CliRunner().invoke(main, ["drill", str(EXAMPLE), "--compare", "--html", str(path)])
    assert result.exit_code == 0
    return path


def browse(page: Path, *options: str, width: int = 1000) -> str:
    profile = page.parent / "profile"
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--no-first-run", "--disable-background-networking", "--force-device-scale-factor=1",
        f"--user-data-dir={profile}", f"--window-size={width},{HEIGHT}", "--enable-logging=stderr",
        *options, page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert complaints == []  # an error in a script, or something that the page's policy refused
    return done.stdout


@cache
def probed(html: Path, width: int) -> dict[str, str]:
    page = html.with_name(f"probe-{width}.html")
    page.write_text(html.read_text().replace("</body>", f"{PROBE}</body>"))
    dom = browse(page, "--dump-dom", width=width)
    found = re.search(r'data-probe="([^"]*)"', dom)
    assert found is not None
    return dict(re.findall(r"&quot;(\w+)&quot;:(\w+)", found[1]))


def pixels(png: bytes) -> Counter[bytes]:
    """Return how often each colour occurs in a PNG of 8-bit RGB or RGBA, in every 16th row."""
    width, _, _, colours = struct.unpack(">IIBB", png[16:26])
    size = {2: 3, 6: 4}[colours]
    data, at = b"", 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += length + 12
    raw, row = zlib.decompress(data), bytearray(width * size)
    counted: Counter[bytes] = Counter()
    for n in range(len(raw) // (width * size + 1)):
        start = n * (width * size + 1)
        row = unfiltered(raw[start], raw[start + 1 : start + 1 + width * size], row, size)
        if n % 16 == 0:
            counted.update(bytes(row[i : i + 3]) for i in range(0, len(row), size))
    return counted


def unfiltered(kind: int, line: bytes, above: bytearray, size: int) -> bytearray:
    """Undo the filter of one line. Source: https://www.w3.org/TR/png-3/#9Filters"""
    row = bytearray(line)
    for i, value in enumerate(row):
        left = row[i - size] if i >= size else 0
        corner = above[i - size] if i >= size else 0
        guess = left + above[i] - corner
        paeth = min((left, above[i], corner), key=lambda c: abs(guess - c))
        row[i] = (value + (0, left, above[i], (left + above[i]) // 2, paeth)[kind]) & 255
    return row


@pytest.mark.parametrize("width", [1400, 500])
def test_all_can_be_reached_read_and_put_away_with_the_keyboard(html: Path, width: int):
    said = probed(html, width)
    assert int(said["marks"]) > 40
    assert said["reached"] == said["stops"]
    assert said["told"] == said["marks"]
    assert (said["dismissed"], said["shut"]) == ("true", "true")


@pytest.mark.parametrize("width", [1400, 500])
def test_nothing_sticks_out_to_the_side(html: Path, width: int):
    said = probed(html, width)
    assert (said["sideways"], said["outside"]) == ("false", "0")


def test_all_is_unfolded_for_printing(html: Path):
    assert probed(html, 1400)["folded"] == "0"


def test_it_is_light_or_dark_as_the_reader_wishes(html: Path):
    shades = {}
    for name, option in (("light", LIGHT), ("dark", DARK)):
        png = html.with_name(f"{name}.png")
        browse(html, option, f"--screenshot={png}")
        colours = pixels(png.read_bytes())
        assert len(colours) > 30  # something is drawn
        shades[name] = colours.most_common(1)[0][0]
    assert shades == {"light": b"\xff\xff\xff", "dark": b"\x14\x17\x1c"}


def test_it_prints(html: Path):
    pdf = html.with_name("page.pdf")
    browse(html, f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))
    assert 3 <= pages <= 20
