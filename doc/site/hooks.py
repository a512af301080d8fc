# SPDX-License-Identifier: Apache-2.0
"""What mkdocs asks for: the pages that parts.py makes from the tree, and their places in the navigation."""

import pathlib
import sys

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mdoc  # noqa: E402
import parts  # noqa: E402


def on_config(config):
    """Fills the parts of the navigation that hold what is found in the tree."""
    found = {
        "@commands": [{parts.title_of(path): f"reference/{path.stem}.md"} for path in parts.manuals()],
        "@formats": [{parts.name_of(path): f"reference/format/{parts.name_of(path)}.md"} for path in parts.schemas()],
        "@notes": [page for page in parts.sources().values() if page.startswith("design/0")],
    }

    def filled(items):
        for item in items:
            if isinstance(item, dict):
                yield {title: list(filled(value)) if isinstance(value, list) else value for title, value in item.items()}
            else:
                yield from found.get(item, [item])

    config.nav = list(filled(config.nav))
    return config


def on_files(files, config):
    try:
        made = parts.generated()
    except (parts.MissingPart, mdoc.UnknownMacro) as error:
        raise PluginError(str(error)) from error
    source_of = {page: source for source, page in parts.sources().items()}
    for page, text in made.items():
        if text is None:
            files.append(File.generated(config, page, abs_src_path=str(parts.ROOT / source_of[page])))
        else:
            files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown, page, **_):
    try:
        return parts.insert(markdown, page.file.src_uri)
    except parts.MissingPart as error:
        raise PluginError(str(error)) from error
