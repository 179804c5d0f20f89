"""Tokens are taken for as long as they are valid and their keys are the issuer's, and cost a look into memory."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from api.http.auth.principal import Principal
from api.http.auth.tokens import verification as token_ring
from api.http.auth.tokens.issuer import key_fetcher
from api.http.auth.tokens.jwks import MIN_SECONDS_BETWEEN, REFRESH_SECONDS, KeySet, KeysUnavailable, parse_keys
from api.http.auth.tokens.trusted_issuer import ALGORITHMS, Trust, UnusableIssuer
from api.http.auth.tokens.verification import REMEMBERED_SECONDS, TokenVerifier
from api.services.errors import ApiError
from api.settings import Settings
from tests.support.service.issuer import (
    AUDIENCE,
    EC,
    ED,
    OTHER_RSA,
    RSA,
    WEAK_RSA,
    Issuer,
    claims,
    forged,
    jwk,
    public_pem,
    signed,
)


class Hands:
    """A ring whose clocks are moved by hand."""

    def __init__(self, issuer: Issuer, **changes: object) -> None:
        settings = Settings(**issuer.settings(**changes))
        trust = Trust.of(settings)
        assert trust is not None
        self.issuer, self.now, self.ticks = issuer, time.time(), 1000.0
        self.keys = KeySet(key_fetcher(trust.issuer, trust.jwks_url), ticks=lambda: self.ticks)
        self.ring = TokenVerifier(trust, self.keys, clock=lambda: self.now, ticks=lambda: self.ticks)

    async def show(self, token: str | None = None, **changes: object) -> Principal | ApiError:
        """Show a token, by default a good one with some claims changed."""
        return await self.ring.caller(signed(claims(self.issuer.url, **changes)) if token is None else token)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer().running() as issuer:
        yield issuer


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def refused(found: Principal | ApiError, message: str) -> None:
    assert isinstance(found, ApiError), found
    assert found.kind.code == "unauthorized"
    assert message in found.detail
    assert found.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_a_good_token(issuer: Issuer) -> None:
    async def test() -> None:
        hands = Hands(issuer)
        expected = Principal("oidc:ann", frozenset({"read"}), "default")
        assert await hands.show() == expected
        assert await hands.show(signed(claims(issuer.url), EC, alg="ES256", kid="two")) == expected
        assert await hands.show(signed(claims(issuer.url), typ="at+jwt")) == expected
        assert await hands.show(aud=["other", AUDIENCE]) == expected
        assert issuer.num_asked == 1

    run(test)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iss": "https://other.example"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "other"}, "another audience"),
        ({"aud": ["other"]}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": {"shardplan": 1}}, "another audience"),
        ({"exp": 1.0}, "has expired"),
        ({"exp": None}, "no time exp"),
        ({"exp": "soon"}, "no time exp"),
        ({"exp": True}, "no time exp"),
        ({"exp": float("nan")}, "no time exp"),
        ({"nbf": 4e9}, "not valid yet"),
        ({"iat": 4e9}, "not valid yet"),
        ({"nbf": "x"}, "no time nbf"),
        ({"sub": None}, "no subject"),
        ({"sub": ""}, "no subject"),
        ({"sub": "a\nb"}, "no subject"),
        ({"sub": 3}, "no subject"),
    ],
)
def test_tokens_with_other_claims(issuer: Issuer, changes: dict[str, object], message: str) -> None:
    async def test() -> None:
        hands = Hands(issuer)
        refused(await hands.show(**changes), message)
        assert isinstance(await hands.show(), Principal)

    run(test)


def confused(issuer: Issuer) -> dict[str, tuple[str, str]]:
    """Tokens that nobody signed with a key of the issuer, or in another way than is taken."""
    message = claims(issuer.url)
    good = signed(message)
    # Signed with the public key of the issuer as if it were a secret that both have.
    hmac = {
        f"HS{bits}": forged(message, {"alg": f"HS{bits}", "kid": "one"}, secret=public_pem(RSA), bits=bits)
        for bits in (256, 384, 512)
    }
    return {
        "none": (forged(message, {"alg": "none", "kid": "one"}), "another way"),
        "None": (forged(message, {"alg": "None", "kid": "one"}), "another way"),
        "no algorithm": (forged(message, {"kid": "one"}), ""),
        **{name: (token, "another way") for name, token in hmac.items()},
        "a key of somebody else": (signed(message, OTHER_RSA), "signature"),
        "the name of another key": (signed(message, kid="two"), "not for this kind"),
        "RS512 with a key for RS256": (signed(message, alg="RS512"), "another way"),
        "no key named": (forged(message, {"alg": "RS256"}, b"x"), "does not name its key"),
        "an unknown key": (signed(message, kid="three"), "no key of the id"),
        "a key inside": (signed(message, OTHER_RSA, jwk=jwk("one", OTHER_RSA)), "signature"),
        "a key elsewhere": (signed(message, OTHER_RSA, jku="http://127.0.0.1:9/keys"), "signature"),
        "something critical": (signed(message, crit=["b64"], b64=True), ""),
        "another kind": (signed(message, typ="logout+jwt"), "of a kind"),
        "changed after it was signed": (good[:-10] + "AAAAAAAAAA", "signature"),
        "cut": (good[:40], "cannot be read"),
        "nothing": ("..", "cannot be read"),
        "long": ("a" * 20_000 + "..", "more than"),
        "not JSON": ("e30.e30.e30", ""),
    }


NAMES = (
    "none None HS256 HS384 HS512 a_key_of_somebody_else the_name_of_another_key RS512_with_a_key_for_RS256 "
    "no_algorithm no_key_named an_unknown_key a_key_inside a_key_elsewhere something_critical another_kind "
    "changed_after_it_was_signed cut nothing long not_JSON"
)


@pytest.mark.parametrize("name", NAMES.split())
def test_tokens_that_the_issuer_did_not_sign(issuer: Issuer, name: str) -> None:
    token, message = confused(issuer)[name.replace("_", " ")]

    async def test() -> None:
        refused(await Hands(issuer).show(token), message)

    run(test)


def test_a_key_that_is_for_one_algorithm_verifies_no_other(issuer: Issuer) -> None:
    issuer.keys = [jwk("one", RSA, alg="RS256"), jwk("free", RSA), jwk("ed", ED)]

    async def test() -> None:
        hands = Hands(issuer, oidc_algorithms="RS256,RS512,EdDSA")
        message = claims(issuer.url)
        refused(await hands.show(signed(message, alg="RS512")), "not for this kind")
        assert isinstance(await hands.show(signed(message, alg="RS512", kid="free")), Principal)
        assert isinstance(await hands.show(signed(message, ED, alg="EdDSA", kid="ed")), Principal)

    run(test)


def test_claims_name_tenant_and_scopes(issuer: Issuer) -> None:
    async def test() -> None:
        more = {"oidc_tenant_claim": "org", "oidc_scope_claim": "realm.roles", "oidc_scope_prefix": "sp."}
        hands = Hands(issuer, **more)
        roles = {"roles": ["sp.solve", "admin", "sp.promote", "sp.root", 3]}
        assert await hands.show(org="ads", realm=roles) == Principal("oidc:ann", frozenset({"solve", "promote"}), "ads")
        assert await hands.show(**{"org": "ads", "realm.roles": "sp.read other"}) == Principal(
            "oidc:ann", frozenset({"read"}), "ads"
        )
        assert await hands.show(org="ads", realm="text") == Principal("oidc:ann", frozenset(), "ads")
        for tenant in (None, "", "Ads", "a/b", "../x", 7, ["ads"], "a" * 64):
            refused(await hands.show(org=tenant, realm=roles), "no name of a tenant")

    run(test)


@pytest.mark.parametrize("space", ["\n", "\t", "\r", "\x0b", "\x1c", "\x85", "\xa0", "\u2003", "\u2028", "\u3000"])
def test_scopes_are_split_at_the_space_of_ascii_alone(issuer: Issuer, space: str) -> None:
    async def test() -> None:
        caller = await Hands(issuer).show(scope=f"x{space}admin read  solve{space}")
        assert caller == Principal("oidc:ann", frozenset({"read"}))

    run(test)


def test_a_token_ends_by_the_clock_on_the_wall_and_begins_by_it(issuer: Issuer) -> None:
    async def test() -> None:
        hands = Hands(issuer)
        token = signed(claims(issuer.url, exp=hands.now + 600))
        assert isinstance(await hands.show(token), Principal)
        for jump, message in ((3600, "has expired"), (-7200, "not valid yet"), (631, "has expired")):
            hands.now += jump
            refused(await hands.show(token), message)
            hands.now -= jump
            assert isinstance(await hands.show(token), Principal)
        hands.now += 629  # clocks may differ by half a minute
        assert isinstance(await hands.show(token), Principal)
        assert issuer.num_asked == 1

    run(test)


def test_a_token_is_verified_once_a_minute(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    decode, num_verified = token_ring.jwt.decode, 0

    def count(*arguments: object, **options: object) -> object:
        nonlocal num_verified
        num_verified += 1
        return decode(*arguments, **options)

    monkeypatch.setattr(token_ring.jwt, "decode", count)

    async def test() -> None:
        hands = Hands(issuer)
        token = signed(claims(issuer.url))
        for _ in range(50):
            assert isinstance(await hands.show(token), Principal)
        assert num_verified == 1
        hands.ticks += REMEMBERED_SECONDS
        await hands.show(token)
        assert num_verified == 2
        assert token not in repr(vars(hands.ring))

    run(test)


def test_memory_is_bounded(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_ring, "MAX_REMEMBERED", 3)

    async def test() -> None:
        hands = Hands(issuer)
        for number in range(5):
            assert isinstance(await hands.show(sub=f"s{number}"), Principal)
        assert len(hands.ring._known) == 3  # noqa: SLF001

    run(test)


def test_a_new_key_is_asked_for_but_not_for_every_token(issuer: Issuer) -> None:
    async def test() -> None:
        hands = Hands(issuer)
        assert isinstance(await hands.show(), Principal)
        issuer.keys.append(jwk("three", OTHER_RSA))
        token = signed(claims(issuer.url), OTHER_RSA, kid="three")
        for number in range(20):
            refused(await hands.show(signed(claims(issuer.url), kid=f"made-up-{number}")), "no key")
        refused(await hands.show(token), "no key")  # for a moment
        assert issuer.num_asked == 1
        hands.ticks += MIN_SECONDS_BETWEEN
        found = await asyncio.gather(*(hands.show(token) for _ in range(20)))
        assert all(isinstance(one, Principal) for one in found)
        assert issuer.num_asked == 2

    run(test)


def test_an_issuer_that_is_down_stops_no_one_whose_key_is_known(issuer: Issuer) -> None:
    async def test() -> None:
        hands = Hands(issuer)
        assert isinstance(await hands.show(), Principal)
        issuer.is_down = True
        hands.ticks += 2 * REFRESH_SECONDS
        for number in range(3):
            assert isinstance(await hands.show(sub=f"new{number}"), Principal)
        new = await hands.show(signed(claims(issuer.url), kid="new"))
        assert isinstance(new, ApiError)
        assert new.kind.code == "issuer-unavailable"
        issuer.is_down = False
        hands.ticks += MIN_SECONDS_BETWEEN
        refused(await hands.show(signed(claims(issuer.url), kid="new")), "no key")

    run(test)


def test_an_issuer_that_is_down_from_the_start(issuer: Issuer) -> None:
    issuer.is_down = True

    async def test() -> None:
        hands = Hands(issuer)
        for _ in range(3):
            found = await hands.show()
            assert isinstance(found, ApiError)
            assert found.kind.code == "issuer-unavailable"
        issuer.is_down = False
        hands.ticks += MIN_SECONDS_BETWEEN
        assert isinstance(await hands.show(), Principal)

    run(test)


def test_a_key_that_was_withdrawn_verifies_nothing_after_an_hour(issuer: Issuer) -> None:
    async def test() -> None:
        hands = Hands(issuer)
        token = signed(claims(issuer.url))
        assert isinstance(await hands.show(token), Principal)
        issuer.keys = [jwk("two", EC)]
        hands.ticks += REFRESH_SECONDS + 1
        assert isinstance(await hands.show(token), Principal)  # which has the keys asked for again
        async with asyncio.timeout(5):
            while issuer.num_asked < 2 or hands.keys._asking is not None:  # noqa: SLF001
                await asyncio.sleep(0.01)
        hands.ticks += REMEMBERED_SECONDS
        refused(await hands.show(token), "no key")

    run(test)


def test_keys_at_an_address_that_was_set(issuer: Issuer) -> None:
    issuer.configuration = {"nothing": "here"}

    async def test() -> None:
        assert isinstance(await Hands(issuer, oidc_jwks_url=f"{issuer.url}/keys").show(), Principal)

    run(test)


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://other.example", "jwks_uri": "{url}/keys"},
        {"issuer": "{url}", "jwks_uri": "http://other.example/keys"},
        {"issuer": "{url}", "jwks_uri": "file:///etc/passwd"},
        {"issuer": "{url}"},
    ],
)
def test_a_configuration_that_is_not_the_issuers_own(issuer: Issuer, configuration: dict[str, str]) -> None:
    issuer.configuration = {name: value.format(url=issuer.url) for name, value in configuration.items()}

    async def test() -> None:
        with pytest.raises(KeysUnavailable):
            await key_fetcher(issuer.url, None)()

    run(test)


def test_keys_that_verify_nothing_are_left_aside() -> None:
    secret = {"kty": "oct", "kid": "secret", "k": "c2VjcmV0", "alg": "HS256"}
    unusable = [
        secret,
        jwk("weak", WEAK_RSA),
        jwk("encryption", RSA, use="enc"),
        jwk("signing", RSA, key_ops=["sign"]),
        jwk("private", RSA, d="AQAB"),
        jwk("operations", RSA, key_ops=None),
        jwk("kind", RSA, kty=[]),
        {**jwk("x", RSA), "kid": None},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        "text",
        None,
    ]
    found = parse_keys(json.dumps({"keys": [*unusable, jwk("good", RSA)]}).encode())
    assert list(found) == ["good"]
    for content in (b"", b"[]", b'{"keys": 1}', json.dumps({"keys": unusable}).encode(), b"[" * 100_000):
        with pytest.raises(KeysUnavailable):
            parse_keys(content)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"auth": "none"}, "SHARDPLAN_AUTH=keys"),
        ({"oidc_audience": None}, "SHARDPLAN_OIDC_AUDIENCE"),
        ({"oidc_issuer": None}, "without SHARDPLAN_OIDC_ISSUER"),
        ({"oidc_issuer": "http://login.example"}, "https://"),
        ({"oidc_jwks_url": "http://login.example/keys"}, "https://"),
        ({"oidc_jwks_url": "file:///keys"}, "https://"),
        ({"oidc_algorithms": "RS256,HS256"}, "RS256"),
        ({"oidc_algorithms": "none"}, "RS256"),
        ({"oidc_algorithms": ""}, "RS256"),
    ],
)
def test_settings_that_trust_too_much(changes: dict[str, object], message: str) -> None:
    good = {"auth": "keys", "oidc_issuer": "https://login.example", "oidc_audience": AUDIENCE}
    assert Trust.of(Settings(**good)) is not None
    assert Trust.of(Settings(auth="keys")) is None
    with pytest.raises(UnusableIssuer, match=message):
        Trust.of(Settings(**{**good, **changes}))


def test_no_algorithm_takes_a_shared_secret() -> None:
    assert not [name for name in ALGORITHMS if name.startswith("HS") or name.lower() == "none"]
