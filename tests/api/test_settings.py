"""Settings come from the environment and are described."""

import os
from pathlib import Path
from typing import get_args

import pytest

from api.cli.errors import BadInput
from api.cli.service.settings import settings_of
from api.settings import Settings


def test_the_environment_sets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPLAN_MAX_BODY_BYTES", "2048")
    monkeypatch.setenv("SHARDPLAN_DATA_DIR", "elsewhere")
    settings = Settings()
    assert settings.max_body_bytes == 2048
    assert settings.database == Path("elsewhere/shardplan.sqlite")


def test_what_is_empty_is_not_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("SHARDPLAN_")]:  # such as those of longer tests
        monkeypatch.delenv(name)
    defaults = Settings()
    for name in Settings.model_fields:
        monkeypatch.setenv(f"SHARDPLAN_{name.upper()}", "")
    assert Settings() == defaults
    for name in Settings.model_fields:
        monkeypatch.delenv(f"SHARDPLAN_{name.upper()}")
        (tmp_path / f"shardplan_{name}").write_text("\n")
    monkeypatch.setenv("SHARDPLAN_SECRETS_DIR", str(tmp_path))
    assert Settings() == defaults


def test_every_setting_is_described() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="solver_processes"):
        Settings(solver_processes=-1)


@pytest.mark.parametrize("text", ["1_000", "\uff11\uff10", " 10", "10.0", "nan", "inf", "1e400", "0x10"])
def test_only_what_people_write_as_a_number_is_one(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numeric = [
        (name, float in kinds)
        for name, field in Settings.model_fields.items()
        if {int, float} & (kinds := {field.annotation, *get_args(field.annotation)})
    ]
    assert len(numeric) > 20
    for name, may_be_a_fraction in numeric:
        if text == "10.0" and may_be_a_fraction:
            continue
        with monkeypatch.context() as environment:
            environment.setenv(f"SHARDPLAN_{name.upper()}", text)
            with pytest.raises(ValueError, match=name):
                Settings()


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


def test_a_folder_of_secrets_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHARDPLAN_SECRETS_DIR", str(tmp_path / "nothing"))
    with pytest.raises(BadInput, match=r"SHARDPLAN_SECRETS_DIR names .*nothing, which is no folder"):
        settings_of()


def test_limits_of_memory_leave_room_for_what_is_loaded() -> None:
    for name, least in (("solver_memory_bytes", 1024**3), ("fit_memory_bytes", 2 * 1024**3)):
        assert Settings(**{name: least})
        with pytest.raises(ValueError, match=name):
            Settings(**{name: least - 1})


def test_what_is_called_like_a_setting_and_is_none_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shardplan_databse_url").write_text("postgresql://me:secret-word@host/name")
    (tmp_path / "postgres_password").write_text("of somebody else")
    for name in [name for name in os.environ if name.startswith("SHARDPLAN_")]:  # such as those of longer tests
        monkeypatch.delenv(name)
    monkeypatch.setenv("SHARDPLAN_SECRETS_DIR", str(tmp_path))
    monkeypatch.setenv("SHARDPLAN_RETAIN_PLAN_DAYS", "3")
    monkeypatch.setenv("SHARDPLAN_WORKER_METRIC_PORT", "9100")
    monkeypatch.setenv("SHARDPLAN_WEB_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv("SHARDPLAN_COLOUR", "green")
    for name in ("SHARDPLAN_SERVER", "SHARDPLAN_TOKEN", "shardplan_log_level"):
        monkeypatch.setenv(name, "info")
    for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "WEB_PORT_80_TCP_ADDR", "WEB_PORT_80_TCP"):
        monkeypatch.setenv(f"SHARDPLAN_{name}", "10.0.0.1")
    settings_of()
    reported = [line for line in capsys.readouterr().err.splitlines() if "is no setting" in line]
    assert sorted(line.removeprefix("shardplan: ") for line in reported) == [
        "SHARDPLAN_COLOUR is no setting and is passed over",
        "SHARDPLAN_RETAIN_PLAN_DAYS is no setting and is passed over; did you mean SHARDPLAN_RETAIN_PLANS_DAYS?",
        "SHARDPLAN_WORKER_METRIC_PORT is no setting and is passed over; did you mean SHARDPLAN_WORKER_METRICS_PORT?",
        "shardplan_databse_url is no setting and is passed over; did you mean SHARDPLAN_DATABASE_URL?",
    ]
