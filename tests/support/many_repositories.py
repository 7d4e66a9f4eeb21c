"""Write small repositories of equal shape, for lakes of many, and count what is read and rewritten of them.

    repositories = write_repositories(folder, 12)            # {"r00": folder/r00, ...}
    changed_files(lake, "cpg_nodes", version)                # data files that a commit has taken rows from

All repositories have the same file names; definitions are named after their repository.
"""

from __future__ import annotations

from pathlib import Path

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.catalog.validation import DATA_STAGES
from codeanatomy.delta.log.replay import read_actions
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.open_table import location

# Source files of a repository.
FILES = 4
# Tables that hold rows of repositories.
DATA_TABLES: tuple[Table, ...] = tuple(table for table in catalog.TABLES if table.stage in DATA_STAGES)


def module_text(repo_id: str, number: int) -> str:
    """Return a module that calls the next one."""
    other = (number + 1) % FILES
    return f'''"""Module {number} of {repo_id}."""

import m{other}


class {repo_id.title()}C{number}:
    """A class."""

    def method(self, x: int) -> int:
        y = x + {number}
        return m{other}.{repo_id}_f{other}(y)


def {repo_id}_f{number}(a, b=1):
    return len([a, b]) + m{other}.{repo_id}_f{other}(a)
'''


def write_repositories(folder: Path, count: int) -> dict[str, Path]:
    """Write repositories; return their folders by name."""
    repositories = {f"r{number:02}": folder / f"r{number:02}" for number in range(count)}
    for repo_id, root in repositories.items():
        root.mkdir(parents=True)
        for number in range(FILES):
            (root / f"m{number}.py").write_text(module_text(repo_id, number), encoding="utf-8")
    return repositories


def without_statistics(*dropped: str) -> tuple[str, ...]:
    """Return settings under which these columns have no statistics in any table of repositories."""
    kept = {
        table.name: [name for name in table.write.stats_columns if name not in dropped]
        for table in DATA_TABLES
    }
    return tuple(
        f"tables.{name}.write.stats_columns={','.join(columns)}"
        if columns
        else f"tables.{name}.write.stats_policy=off"
        for name, columns in kept.items()
    )


def changed_files(lake: Path, name: str, version: int) -> list[LoggedFile]:
    """Return the data files that a commit removes, as a whole or single rows of them."""
    removed = {each.remove.path for each in read_actions(location(str(lake), name), version) if each.remove}
    return [file for file in light_files(str(lake), name, version - 1) if file.logged_path in removed]
