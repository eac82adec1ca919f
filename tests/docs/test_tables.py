"""The generated tables of the documentation are up to date, including the table on the comparison with Kafka."""

from __future__ import annotations

from types import ModuleType

import pytest

from kafka_msgs import ErrorCode, drafts, errors
from tests.oracle import Oracle
from tests.oracle.class_pairs import ALL_NAMES
from tests.support.docs_tools import load_tool


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    """The script that writes the tables."""
    return load_tool("tables")


def test_the_tables_are_up_to_date(tables: ModuleType) -> None:
    assert tables.main(["--check"]) == 0


def test_a_stale_table_is_noticed_and_only_its_region_replaced(tables: ModuleType) -> None:
    page = "before\n<!-- table: rules -->\nold\n<!-- end of table -->\nafter\n"
    assert tables._replaced(page, "rules", "new | rows\n") == page.replace("old\n", "new | rows\n")
    with pytest.raises(ValueError, match="0 places"):
        tables._replaced(page, "messages", "")


def test_a_bar_in_a_cell_does_not_end_it(tables: ModuleType) -> None:
    assert tables.markdown(["a"], [["x | y"]]) == "| a |\n| --- |\n| x \\| y |\n"


def test_every_draft_has_a_table(tables: ModuleType) -> None:
    assert set(tables.TABLES["drafts.md"]) == set(drafts.DRAFTS)


def test_every_error_has_a_meaning_and_an_action(tables: ModuleType) -> None:
    guide = tables._error_guide()
    exported = {name: getattr(errors, name) for name in errors.__all__}
    exceptions = {name for name, cls in exported.items() if isinstance(cls, type) and issubclass(cls, Exception)}
    assert set(guide["exceptions"]) == exceptions
    assert set(guide["codes"]) == {code.name for code in ErrorCode}
    assert all(meaning and action for meaning, action in guide["codes"].values())


@pytest.mark.oracle
def test_the_table_says_what_the_oracle_compares(tables: ModuleType, oracle: Oracle) -> None:
    """Every message is compared; the table names exactly the messages for which Kafka has no JSON converter."""
    without_json = {name for name, info in oracle.messages().items() if not info.has_json}
    released = {cls.INFO.name for cls in tables.iter_message_classes()}
    assert without_json & released == tables.BYTES_ONLY
    assert released <= set(ALL_NAMES)
