"""Settings of a server or worker: from options, else from the environment."""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from api.cli.errors import BadInput, echo
from api.client import TOKEN_VARIABLE
from api.settings import SECRETS_VARIABLE, Settings
from cost_models.text.read_number import finite_number

_PREFIX = "SHARDPLAN_"
_SETTINGS = frozenset(name.upper() for name in Settings.model_fields)
#: Variables that others read: clients of the service, and the settings themselves.
_OTHERS = frozenset({"SHARDPLAN_SERVER", TOKEN_VARIABLE, SECRETS_VARIABLE})
#: Names and values of the variables that Kubernetes sets for services.
_OF_SERVICE = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def settings_of(**options: Any) -> Settings:
    """Return the settings, and print on stderr what is called like one and is none. Raises as ``read_settings``."""
    settings = read_settings(**options)
    folder = os.environ.get(SECRETS_VARIABLE)
    files = {path.name: "" for path in sorted(Path(folder).iterdir())} if folder else {}
    for name, suggestion in _unknown({**os.environ, **files}):
        echo(f"shardplan: {name} is no setting and is passed over{suggestion}")
    return settings


def read_settings(**options: Any) -> Settings:
    """Return the settings; options that are ``None`` were not given. Raises ``BadInput``."""
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except SettingsError as error:
        raise BadInput(str(error)) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name, value = ".".join(str(part) for part in first["loc"]), str(first["input"])
        repeated = "" if finite_number(value) is None else f", not {value}"  # a text may be a secret
        raise BadInput(f"setting {name}: {first['msg']}{repeated}") from None


def _unknown(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each name that looks like a setting's, and which setting may be meant."""
    for name, value in values.items():
        variable = name.upper()
        if not variable.startswith(_PREFIX) or variable in _OTHERS or _is_of_kubernetes(variable, value):
            continue
        setting = variable.removeprefix(_PREFIX)
        if setting not in _SETTINGS:
            close = difflib.get_close_matches(setting, _SETTINGS, n=1, cutoff=0.75)
            yield name, f"; did you mean {_PREFIX}{close[0]}?" if close else ""


def _is_of_kubernetes(variable: str, value: str) -> bool:
    """Whether Kubernetes sets it in every pod, for a service whose name begins with "shardplan"."""
    return _OF_SERVICE.search(variable) is not None or _ADDRESS.match(value) is not None
