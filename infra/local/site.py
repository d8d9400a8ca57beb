"""Hooks of the site: pages and links as they work on GitHub work on the site too.

README, CONTRIBUTING and CHANGELOG stand outside docs/ and become pages. Any other file of the
repository that a page links to, such as a manifest, is copied to `files/` on the site. A link to a
folder, which a site cannot show, becomes its text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = "docs/"
PAGES: Final = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Page in the repository -> page on the site."""
_LINK: Final = re.compile(r"\[([^\[\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
"""Text, path and anchor."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages outside docs/, and the files that pages link to."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - only the site's environment has it

    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    linked = {
        site_path(link, in_repository(file.src_uri))
        for file in files.documentation_pages()
        for _, link, _ in _LINK.findall(file.content_string)
    }
    for uri in sorted(path for path in linked if path.startswith("files/")):
        source_file = ROOT / uri.removeprefix("files/")
        if source_file.is_file():
            files.append(File.generated(config, uri, abs_src_path=str(source_file)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point each relative link at where its target stands on the site."""
    uri = page.file.src_uri

    def rewrite(match: re.Match[str]) -> str:
        text, link, anchor = match.groups("")
        target = site_path(link, in_repository(uri))
        if (ROOT / target.removeprefix("files/")).is_dir() and target.startswith("files/"):
            return text
        return f"[{text}]({posixpath.relpath(target, posixpath.dirname(uri) or '.')}{anchor})"

    return _LINK.sub(rewrite, markdown)


def in_repository(uri: str) -> str:
    """Return where a page of the site stands in the repository."""
    return {page: source for source, page in PAGES.items()}.get(uri, DOCS + uri)


def site_path(link: str, source: str) -> str:
    """Return where the target of a link stands on the site.

    Args:
        link: relative to `source`, as GitHub follows it.
        source: the page that holds the link, by its path in the repository.
    """
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if path in PAGES:
        return PAGES[path]
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    return f"files/{path}"
