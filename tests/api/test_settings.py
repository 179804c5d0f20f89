"""Settings come from the environment and are described."""

from pathlib import Path

import pytest

from api.settings import Settings


def test_the_environment_sets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPLAN_MAX_BODY_BYTES", "2048")
    monkeypatch.setenv("SHARDPLAN_DATA_DIR", "elsewhere")
    settings = Settings()
    assert settings.max_body_bytes == 2048
    assert settings.database == Path("elsewhere/shardplan.sqlite")


def test_every_setting_is_described() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="solver_processes"):
        Settings(solver_processes=-1)


def test_the_password_of_the_database_is_not_shown() -> None:
    settings = Settings(database_url="postgresql://me:secret-word@host/name")
    assert "secret-word" not in f"{settings!r} {settings} {settings.model_dump_json()}"
