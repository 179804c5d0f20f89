"""The folder of a server is its own, and its owner's."""

import os
from pathlib import Path

import pytest

from api.store.data_directory import DataFolderInUse, exclusive_data_directory


def test_a_new_folder_is_of_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with exclusive_data_directory(tmp_path / "a" / "data"):
            assert (tmp_path / "a" / "data").stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with exclusive_data_directory(tmp_path):
        assert tmp_path.stat().st_mode & 0o777 == 0o750


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    with exclusive_data_directory(tmp_path), pytest.raises(DataFolderInUse), exclusive_data_directory(tmp_path):
        raise AssertionError("two own it")
