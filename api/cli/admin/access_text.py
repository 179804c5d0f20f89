"""Keys and webhooks as text for people, at most 80 columns wide where ids and addresses allow it."""

from collections.abc import Sequence
from datetime import datetime

from api.schemas.access import CreatedKey, KeyDocument
from api.schemas.webhooks import CreatedWebhook, WebhookDocument
from planner.output.explain.text.layout import paragraph, wrapped


def created_key_text(key: CreatedKey) -> str:
    """Return a new key, with its secret."""
    return "\n".join(
        [
            f"made the key {key.id} ({key.name}) of the tenant {key.tenant}",
            f"  scopes   {', '.join(key.scopes)}",
            f"  ends     {_day(key.expires_at, 'when it is revoked')}",
            f"  key      {key.key}",
        ]
    )


def keys_text(keys: Sequence[KeyDocument]) -> str:
    """Return all keys, each in two lines."""
    if not keys:
        return "no keys yet: `shardplan keys create --name NAME --scope read` makes one"
    lines: list[str] = []
    for key in keys:
        revoked = None if key.revoked_at is None else f"revoked {_day(key.revoked_at, '')}"
        lines.append(f"{key.id}  {key.name}")
        facts = [
            f"tenant {key.tenant}",
            f"scopes {' '.join(key.scopes)}",
            f"last used {_day(key.last_used_at, 'never')}",
            revoked or f"ends {_day(key.expires_at, 'when it is revoked')}",
        ]
        lines += wrapped(facts, label="")
    return "\n".join(lines)


def created_webhook_text(hook: CreatedWebhook, *, with_secret: bool) -> str:
    """Return a new webhook, what to do with its secret, and how to see that it works."""
    secret = [f"  secret   {hook.secret}"] if with_secret else []
    lines = [
        f"shardplan: added the webhook {hook.id} ({hook.name})",
        f"  address  {hook.url}",
        *wrapped(hook.events, label="events  "),
        *secret,
        *paragraph("the secret is shown this once: give it to the receiver, which verifies messages with it"),
        *paragraph(
            "to test it, have something happen, such as a solve that ends, and see what became of the message:"
            " a server that runs sends events to it within seconds"
        ),
        f"    GET /v1/webhooks/{hook.id}/deliveries",
    ]
    return "\n".join(lines)


def webhooks_text(hooks: Sequence[WebhookDocument]) -> str:
    """Return all webhooks, each in three lines."""
    if not hooks:
        return "no webhooks yet: `shardplan webhooks create URL --name NAME` adds one"
    lines: list[str] = []
    for hook in hooks:
        state = hook.state if hook.disabled_reason is None else f"{hook.state} ({hook.disabled_reason})"
        lines += [f"{hook.id}  {state}  {hook.name}", f"  address  {hook.url}"]
        lines += wrapped(hook.events, label="events  ")
        if hook.num_failed_in_row or hook.num_dropped:
            lines.append(f"  trouble  {hook.num_failed_in_row} failed in a row, {hook.num_dropped} dropped")
    return "\n".join(lines)


def _day(moment: datetime | None, otherwise: str) -> str:
    return otherwise if moment is None else f"{moment:%Y-%m-%d}"
