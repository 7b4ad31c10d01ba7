"""The documentation against the code: files it names exist, pages it links exist, its tables are those of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob('*.md'), *ROOT.glob('docs/**/*.md')])


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(r'`((?:src|tests|docs|bench|requirements)/[\w./-]*\w/?)`', page.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_pages_that_a_page_links_exist(page: Path) -> None:
    links = re.findall(r'\]\(([^)#:]+)(?:#[^)]*)?\)', page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_navigation() -> None:
    def pages(entries: list[dict[str, object]]) -> list[str]:
        found = []
        for entry in entries:
            for value in entry.values():
                found += pages(value) if isinstance(value, list) else [str(value)]
        return found

    site = tomllib.loads((ROOT / 'zensical.toml').read_text())['project']
    assert sorted(pages(site['nav'])) == sorted(p.name for p in (ROOT / 'docs').glob('*.md'))


def test_apis_are_those_of_the_code() -> None:
    from acklog.broker.apis import APIS

    text = (ROOT / 'docs/protocol.md').read_text()
    table = text.split('<!-- apis: begin', 1)[1].split('<!-- apis: end', 1)[0]
    rows = re.findall(r'^\| (\d+) \| (\w+) \| (\d+) to (\d+) \|', table, re.MULTILINE)
    documented = [(int(key), name, (int(low), int(high))) for key, name, low, high in rows]
    assert documented == sorted((api.key, api.name, api.versions) for api in APIS)
