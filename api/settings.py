"""What can be set: by arguments, from the environment (``SHARDPLAN_*``), or by files of a folder of secrets."""

import os
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from cost_models.text.read_number import finite_number, whole_number

#: Names the folder whose files are settings: ``shardplan_database_url`` has the address of the database.
SECRETS_VARIABLE = "SHARDPLAN_SECRETS_DIR"


class _Secrets(SecretsSettingsSource):
    """Files that are settings; one without content is as good as none."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        value, key, is_complex = super().get_field_value(field, field_name)
        return value or None, key, is_complex


class Settings(BaseSettings):
    """Settings of one server; every field is an environment variable ``SHARDPLAN_<NAME>``, set if it is not empty."""

    model_config = SettingsConfigDict(env_prefix="SHARDPLAN_", env_ignore_empty=True, extra="ignore", frozen=True)

    data_dir: Path = Field(
        default=Path("shardplan-data"),
        description="Folder of the database, and of what one server or worker needs for itself; on a local disk.",
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL database that servers and workers share, like postgresql://user:password@host/name;"
        " none: a file in the data folder.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    auth: Literal["none", "keys"] = Field(
        default="none",
        description="Who may send requests: none: all who reach the address; keys: callers with a key (shardplan keys),"
        " or a token of the issuer, where one is set.",
    )
    oidc_issuer: str | None = Field(
        default=None,
        description="Address of an OpenID Connect issuer whose tokens are accepted besides keys; none: keys alone.",
    )
    oidc_audience: str | None = Field(
        default=None, description="What the tokens of the issuer have to name as their audience (aud)."
    )
    oidc_jwks_url: str | None = Field(
        default=None,
        description="Address of the public keys of the issuer; none: the one that the issuer publishes"
        " (/.well-known/openid-configuration).",
    )
    oidc_algorithms: str = Field(
        default="RS256,ES256", description="Signatures of tokens that are taken, with commas between them."
    )
    oidc_tenant_claim: str | None = Field(
        default=None, description="Claim of a token that names its tenant; none: all are of the tenant default."
    )
    oidc_scope_claim: str = Field(
        default="scope", description="Claim of a token with its scopes: a text with spaces, or a list."
    )
    oidc_scope_prefix: str | None = Field(
        default=None, description="What stands before read, solve, promote and admin in that claim; none: nothing."
    )
    insecure: bool = Field(
        default=False,
        description="Listen on an address that other machines reach although no key is required.",
    )
    webhook_hosts: str | None = Field(
        default=None,
        description="Hosts that webhooks may have, such as hooks.example.com, *.example.com:8443, http://hooks.internal;"
        " and addresses or networks that are not public and may be reached, such as 10.2.0.0/16; none: no webhooks.",
    )
    rate_limit_per_minute: int | None = Field(
        default=None,
        ge=1,
        description="Requests a minute of a key, or of an address without one, to this server; more are refused with"
        " 429 and Retry-After; fetches of plans are not counted; none: no limit.",
    )
    trusted_proxies: str | None = Field(
        default=None,
        description="Addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed, such as"
        " 10.2.0.7,10.3.0.0/16; none: these headers are ignored.",
    )
    worker_metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port of a worker for its metrics, on SHARDPLAN_HOST; none: nothing listens.",
    )
    max_body_bytes: int = Field(default=32 * 1024**2, ge=1024, description="Largest request body. Unit: bytes.")
    max_caller_bodies_bytes: int | None = Field(
        default=None,
        description="Request bodies of a key, or of an address without one, that came and are not answered yet; more"
        " are refused with 429 and Retry-After; none: four of the largest. Unit: bytes.",
    )
    max_bodies_bytes: int | None = Field(
        default=None,
        description="Request bodies of all callers that came and are not answered yet; more are refused with 503 and"
        " Retry-After; none: eight of the largest. Unit: bytes.",
    )
    head_patience_seconds: float = Field(
        default=20.0,
        gt=0,
        description="Longest wait for the head of a request; then 408, or the end of a connection on which nothing"
        " came. Unit: seconds.",
    )
    body_patience_seconds: float = Field(
        default=60.0,
        gt=0,
        description="Longest wait for a request body, and a second more for each 32 KiB that came; then 408."
        " Unit: seconds.",
    )
    max_queued_solves: int = Field(
        default=64, ge=1, description="Solves that may wait; more are refused with 503 and Retry-After."
    )
    max_solve_seconds: float | None = Field(
        default=None,
        ge=0.001,
        description="Longest search; specs that ask for more are solved within it, with a warning; none: as they ask."
        " Unit: seconds.",
    )
    solver_processes: int = Field(
        default=1,
        ge=0,
        le=256,
        description="Solves that run at the same time here; those that share a database use the same number, or 0:"
        " then only others solve.",
    )
    runner: Literal["local", "ray"] = Field(
        default="local",
        description="Where solves run: local: in processes of this machine; ray: on a Ray cluster (shardplan[ray]).",
    )
    ray_address: str | None = Field(
        default=None,
        description="Address of the Ray cluster for SHARDPLAN_RUNNER=ray, like head.internal:6379; this machine is one"
        " of its nodes.",
    )
    solver_grace_seconds: float = Field(
        default=2.0,
        gt=0,
        description="Time that a solve may take beyond its own limit, apart from preparation, before it is stopped.",
    )
    solver_preparation_seconds_per_table: float = Field(
        default=0.01,
        ge=0,
        description="Time allowed on top for listing, pricing and checking, for each table of the spec. Unit: seconds.",
    )
    solver_memory_bytes: int | None = Field(
        default=None,
        ge=1024**3,
        description="Address space of a solver process, which takes 0.8 GiB before it solves; none: no limit."
        " Unit: bytes.",
    )
    max_queued_fits: int = Field(
        default=16, ge=1, description="Fits of cost models that may wait; more are refused with 503 and Retry-After."
    )
    fit_limit_seconds: float = Field(
        default=1800.0, gt=0, description="Longest time of a fit; it is stopped then. Unit: seconds."
    )
    fit_memory_bytes: int | None = Field(
        default=None,
        ge=2 * 1024**3,
        description="Address space of the process of a fit, of which it takes 1.3 GiB before it fits; none: no limit."
        " Unit: bytes.",
    )
    max_wait_seconds: float = Field(
        default=60.0, ge=0, le=600, description="Longest time that a request may wait for a solve to end."
    )
    max_event_streams: int = Field(
        default=1024, ge=1, description="Streams of events that may be open; more are refused with 503 and Retry-After."
    )
    plan_cache_bytes: int = Field(
        default=256 * 1024**2,
        ge=0,
        description="Memory for plans that are served often, twice as much for their slices. Unit: bytes.",
    )
    retain_solves_days: float | None = Field(
        default=None, ge=1, description="How long solves are kept after their end; none: for good. Unit: days."
    )
    retain_events_days: float | None = Field(
        default=None,
        ge=1,
        description="How long events of solves are kept after the end; none: as long as the solves. Unit: days.",
    )
    retain_plans_days: float | None = Field(
        default=None,
        ge=1,
        description="How long plans are kept that no channel ever pointed at, no solve has and no measurement is of;"
        " none: for good. Unit: days.",
    )
    retain_audit_days: float | None = Field(
        default=None, ge=1, description="How long entries of the audit trail are kept; none: for good. Unit: days."
    )
    log_format: Literal["auto", "json", "text"] = Field(
        default="auto", description="json: a document a line; text: for people; auto: text on a terminal, else json."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least weight of what is logged."
    )
    access_log: bool = Field(default=True, description="Whether every request is logged, at the level info.")
    traces: Literal["none", "otlp"] = Field(
        default="none",
        description="otlp: spans of requests and solves are sent to OTEL_EXPORTER_OTLP_ENDPOINT; needs the extra otel.",
    )
    busy_timeout_seconds: float = Field(default=30.0, gt=0, description="Longest wait for the lock of the database.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read files of secrets where a folder is named. Raises ``SettingsError`` where it is not there."""
        folder = os.environ.get(SECRETS_VARIABLE)
        if not folder:
            return init_settings, env_settings
        if not Path(folder).is_dir():
            raise SettingsError(f"{SECRETS_VARIABLE} names {folder}, which is no folder")
        return init_settings, env_settings, _Secrets(settings_cls, secrets_dir=folder)

    @field_validator("*", mode="before")
    @classmethod
    def _check_number(cls, value: object, info: ValidationInfo) -> object:
        kinds = get_args(annotation := cls.model_fields[str(info.field_name)].annotation) or (annotation,)
        if isinstance(value, str):
            if int in kinds and whole_number(value) is None:
                raise PydanticCustomError("int_parsing", "Input should be a whole number")
            if float in kinds and finite_number(value) is None:
                raise PydanticCustomError("float_parsing", "Input should be a finite number")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, listed: str | None) -> str | None:
        for name in (listed or "").split(","):
            try:
                ip_network(name.strip() or "::")
            except ValueError as error:
                raise PydanticCustomError("proxies", "{error}", {"error": str(error)}) from None
        return listed

    @field_validator("max_caller_bodies_bytes", "max_bodies_bytes")
    @classmethod
    def _check_bodies(cls, limit: int | None, info: ValidationInfo) -> int | None:
        least = info.data.get("max_body_bytes", 0)
        if limit is not None and limit < least:
            message = (
                "{limit} is less than one body may have (SHARDPLAN_MAX_BODY_BYTES, {least}): allow at least {least}"
            )
            raise PydanticCustomError("bodies", message, {"limit": limit, "least": least})
        return limit

    @property
    def caller_bodies_bytes(self) -> int:
        """What the bodies of one caller may take."""
        return self.max_caller_bodies_bytes or 4 * self.max_body_bytes

    @property
    def bodies_bytes(self) -> int:
        """What the bodies of all callers may take."""
        return self.max_bodies_bytes or 8 * self.max_body_bytes

    @property
    def database(self) -> Path:
        """The database file, where there is no database URL."""
        return self.data_dir / "shardplan.sqlite"

    @property
    def queue_file(self) -> Path:
        """The file of the queue of works, where there is no database URL; it is made again where it is gone."""
        return self.data_dir / "queue.sqlite"
