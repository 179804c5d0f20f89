"""Settings of a server or worker: from options, else from the environment."""

from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from api.cli.errors import BadInput
from api.settings import Settings


def settings_of(**options: Any) -> Settings:
    """Return the settings; options that are ``None`` were not given. Raises ``BadInput``."""
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except SettingsError as error:
        raise BadInput(str(error)) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"setting {name}: {first['msg']}") from None
