"""Settings come from the environment and are described."""

from pathlib import Path

import pytest

from api.cli.errors import BadInput
from api.cli.settings import settings_of
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


def test_files_of_secrets_are_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "shardplan_database_url").write_text("postgresql://me:secret-word@host/name\n")
    (tmp_path / "shardplan_port").write_text("1234")
    (tmp_path / "postgres_password").write_text("of somebody else")
    monkeypatch.setenv("SHARDPLAN_SECRETS_DIR", str(tmp_path))
    monkeypatch.setenv("SHARDPLAN_PORT", "8081")
    settings = Settings()
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql://me:secret-word@host/name"
    assert settings.port == 8081  # the environment goes first
    assert "secret-word" not in repr(settings)


def test_a_folder_of_secrets_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHARDPLAN_SECRETS_DIR", str(tmp_path / "nothing"))
    with pytest.raises(BadInput, match=r"SHARDPLAN_SECRETS_DIR names .*nothing, which is no folder"):
        settings_of()


def test_limits_of_memory_leave_room_for_what_is_loaded() -> None:
    for name, least in (("solver_memory_bytes", 1024**3), ("fit_memory_bytes", 2 * 1024**3)):
        assert Settings(**{name: least})
        with pytest.raises(ValueError, match=name):
            Settings(**{name: least - 1})
