"""A plan on the launcher's disk: written whole or not at all, kept while the channel stands still."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from .client import PlannerClient
from .documents import parse_plan
from .errors import DigestMismatch
from .fetched import Form
from .plan_types import PlanDocument

#: Of a new temporary file; backups have secrets in them.
_PRIVATE_MODE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan on disk."""

    path: Path
    document: PlanDocument = field(repr=False)  # megabytes, too many for a log
    digest: str
    changed: bool  # whether this fetch wrote it


def fetch(
    client: PlannerClient,
    channel: str,
    path: str | os.PathLike[str],
    *,
    form: Form = "long",
    world_size: int | None = None,
) -> PlanFile:
    """Bring a file up to date with a channel; ``form`` is that of a plan that is written.

    ``world_size`` is the number of ranks of the job, by which a channel with plans for several sizes chooses.

    If the service knows only the long form, the plan is written in long form. ``PATH.etag``, next to the file, has the
    ETag with the hash and the form of the file. The ETag counts only while the hash matches: after an edit the plan is
    fetched again.

    Raises
    ------
    ClientError
        As from :meth:`PlannerClient.fetch_channel`; the file is then as it was.
    OSError
        The file cannot be written.
    """
    target = Path(path)
    note = target.with_name(target.name + ".etag")
    stored = _stored_content(target, note, form)
    plan = client.fetch_channel(channel, etag=stored[1] if stored else None, world_size=world_size)
    if plan is None:
        assert stored is not None  # whose ETag was sent
        document, digest = parse_plan(stored[0])
        return PlanFile(path=target, document=document, digest=digest, changed=False)
    received_form, hashed = plan.received_form, hashlib.sha256()
    is_long = "long" in (form, received_form)
    write_atomically(target, _hashed(plan.long_parts() if is_long else [plan.received], hashed))
    if plan.etag is None:
        note.unlink(missing_ok=True)
    else:
        written_form = "long" if is_long else "compact"
        record = {
            "etag": plan.etag,
            "sha256": hashed.hexdigest(),
            "form": written_form,
            "received_form": received_form,
        }
        write_atomically(note, [json.dumps(record).encode()])
    return PlanFile(path=target, document=plan.document, digest=plan.digest, changed=True)


def _hashed(parts: Iterable[bytes], hashed: "hashlib._Hash") -> Iterator[bytes]:
    for part in parts:
        hashed.update(part)
        yield part


def read(path: str | os.PathLike[str]) -> PlanFile:
    """Read a plan, in either form, from disk and check that its content has the digest it claims.

    Raises
    ------
    UnexpectedAnswer
        It is not a plan.
    DigestMismatch
        It was changed.
    """
    target = Path(path)
    document, digest = parse_plan(target.read_bytes())
    claimed = document.get("plan_digest", "nothing")
    if claimed != digest:
        raise DigestMismatch(claimed, digest, str(target))
    return PlanFile(path=target, document=document, digest=digest, changed=False)


def write_atomically(path: Path, parts: Iterable[bytes]) -> None:
    """Replace a file by the parts of new content, which everybody may read, in a folder that is made if need be.

    A pipe or a device, such as ``/dev/null``, takes the content and is not replaced. A symbolic link stays, and the
    file that the link names is replaced.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as opened:
            opened.writelines(parts)
        return
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, mode=0o644) as file:
        file.writelines(parts)


@contextlib.contextmanager
def atomic_file(path: Path, *, mode: int = _PRIVATE_MODE) -> Iterator[IO[bytes]]:
    """Yield a file that replaces that of ``path`` after the block; readers see the old bytes or the new, never a part.

    Survives a crash of the machine: the bytes and the directory entry are both flushed.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode != _PRIVATE_MODE:  # as the file was made; some mounts refuse chmod
            Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _stored_content(target: Path, note: Path, form: Form) -> tuple[bytes, str] | None:
    """The file's bytes and their ETag, where the note belongs to them, and they have the form asked for.

    They may also have the long form of a service that knew no other: a service that knows both has other ETags for the
    compact one.
    """
    try:
        content, record = target.read_bytes(), json.loads(note.read_bytes())
        etag, sha256 = record["etag"], record["sha256"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    has_form = record.get("form", "long") == form or record.get("received_form") == "long"
    if not isinstance(etag, str) or sha256 != hashlib.sha256(content).hexdigest() or not has_form:
        return None
    return content, etag
