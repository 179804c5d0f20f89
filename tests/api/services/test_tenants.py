"""Parts of tenants are made when they are first asked for, and so many are kept."""

import asyncio
import threading
import time

import pytest

from api.services.tenants import Tenants
from api.store.tenants import is_tenant


def test_a_part_is_made_once_and_not_in_the_event_loop() -> None:
    made: list[tuple[str, int]] = []

    def make(tenant: str) -> str:
        made.append((tenant, threading.get_ident()))
        return f"part of {tenant}"

    async def test() -> None:
        tenants = Tenants(make, max_tenants=2)
        assert tenants.peek("a") is None
        for tenant in ("a", "a", "b", "a", "c", "a"):
            assert await tenants.get(tenant) == f"part of {tenant}"
        assert [tenant for tenant, _ in made] == ["a", "b", "c"]  # c took the place of b, which came before a
        assert (tenants.peek("a"), tenants.peek("b")) == ("part of a", None)
        assert threading.get_ident() not in {thread for _, thread in made}

    asyncio.run(test())


def test_a_part_that_could_not_be_made_is_made_again() -> None:
    failing = [True]

    def make(tenant: str) -> str:
        if failing.pop() if failing else False:
            raise OSError("the disk is gone")
        return tenant

    async def test() -> None:
        tenants = Tenants(make)
        with pytest.raises(OSError, match="gone"):
            await tenants.get("a")
        assert await tenants.get("a") == "a"

    asyncio.run(test())


@pytest.mark.parametrize("name", ["default", "a", "0", "ads.us_1-x", "a" * 63])
def test_names_of_tenants(name: str) -> None:
    assert is_tenant(name)


@pytest.mark.parametrize("name", ["", "A", "a/b", "-a", ".", "..", "a b", "a\n", "\u00e4", "a" * 64])
def test_what_is_no_name_of_a_tenant(name: str) -> None:
    assert not is_tenant(name)


def test_many_who_come_at_once_have_one_part_made() -> None:
    made: list[str] = []

    def make(tenant: str) -> str:
        made.append(tenant)
        time.sleep(0.1)
        return tenant

    async def test() -> None:
        tenants = Tenants(make)
        assert set(await asyncio.gather(*(tenants.get("a") for _ in range(50)))) == {"a"}
        assert made == ["a"]

    asyncio.run(test())


def test_who_only_looks_stays_too() -> None:
    async def test() -> None:
        tenants = Tenants(str, max_tenants=2)
        await tenants.get("a")
        await tenants.get("b")
        assert tenants.peek("a") == "a"
        await tenants.get("c")
        assert (tenants.peek("a"), tenants.peek("b")) == ("a", None)

    asyncio.run(test())
