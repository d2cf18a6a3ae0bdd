"""``recall backup`` and ``recall doctor``."""

import sqlite3
from pathlib import Path

from tests.integration.command_line import Recall


def test_a_backup_is_a_whole_store(shop: Path, recall: Recall, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "recall.db"
    copy.parent.mkdir()
    told = recall("backup", str(copy), "--json").json
    assert told == {"file": str(copy), "bytes": copy.stat().st_size}
    assert len(recall("apps", "--data-dir", str(copy.parent), "--json").json) == 2
    assert recall("search", "cookies", "--data-dir", str(copy.parent), "--json").json["total_messages"] == 1


def test_a_backup_overwrites_nothing(shop: Path, recall: Recall, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    ran = recall("backup", str(tmp_path / "mine"))
    assert ran.code == 1
    assert "exists already" in ran.failure
    assert (tmp_path / "mine").read_text() == "precious"
    assert recall("backup", str(tmp_path / "no-folder" / "copy")).code == 1


def test_a_sound_store(shop: Path, recall: Recall) -> None:
    report = recall("doctor", "--json").json
    assert report["problems"] == []
    assert report["has_fts5"] is True
    assert (report["messages"], report["documents"]) == (5, 5)
    assert report["database"] == str(shop)
    assert report["data_dir"] == str(shop.parent)
    assert report["file_version"] == report["known_version"]
    shown = recall("doctor").out
    assert "All is well." in shown
    assert str(shop) in shown.replace("\n", "")


def test_a_store_that_can_not_be_opened_is_a_finding(shop: Path, recall: Recall) -> None:
    shop.write_bytes(b"no database" * 100)
    ran = recall("doctor")
    assert (ran.code, ran.err) == (1, "")
    assert "Problem: " in ran.out
    assert "All is well." not in ran.out


def test_a_damaged_index_is_a_finding(shop: Path, recall: Recall) -> None:
    with sqlite3.connect(shop) as file:
        file.execute("UPDATE chat_search_fts_data SET block = zeroblob(8) WHERE id > 10")
    file.close()
    ran = recall("doctor", "--json")
    assert ran.code == 1
    assert '"problems": []' not in ran.out
