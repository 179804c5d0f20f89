"""Where messages may go, and every way to ask for another place."""

import pytest

from api.services.webhooks.targets import HostAllowList, TargetRefused, UnusableAllowList, read_url

HOOK = "https://hooks.test/x"


@pytest.mark.parametrize(
    ("listed", "url"),
    [
        ("hooks.test", "https://hooks.test"),
        ("hooks.test", "https://HOOKS.test:443/x?y=%20z"),
        ("a.test, hooks.test", HOOK),
        ("hooks.test:8443", "https://hooks.test:8443/"),
        ("http://hooks.test", "http://hooks.test/"),
        ("*.hooks.test", "https://a.b.hooks.test/"),
        ("10.1.0.0/16", "https://10.1.2.3/"),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000/"),
        ("[fd00::/8]:8443", "https://[fd00::1]:8443/"),
        ("8.8.8.8", "https://8.8.8.8/"),
    ],
)
def test_what_is_listed_is_allowed(listed: str, url: str) -> None:
    assert HostAllowList(listed).check(url).scheme == url.partition(":")[0]


@pytest.mark.parametrize(
    ("listed", "url"),
    [
        (None, HOOK),
        ("", HOOK),
        ("hooks.test", "http://hooks.test/"),  # https unless the list says so
        ("http://hooks.test", HOOK),
        ("hooks.test", "https://hooks.test:8443/"),
        ("hooks.test", "https://a.hooks.test/"),
        ("*.hooks.test", "https://hooks.test/"),
        ("*.hooks.test", "https://evilhooks.test/"),
        ("hooks.test", "https://hooks.test.evil.test/"),
        ("hooks.test", "https://8.8.8.8/"),  # an address is listed as one
        ("10.1.0.0/16", "https://10.2.0.1/"),
        ("10.1.0.0/16", "https://10.1.2.3:8443/"),
        ("10.1.0.0/16", "https://[::ffff:10.1.2.3]/"),
    ],
)
def test_what_is_not_listed_is_refused(listed: str | None, url: str) -> None:
    with pytest.raises(TargetRefused, match="SHARDPLAN_WEBHOOK_HOSTS"):
        HostAllowList(listed).check(url)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://hooks.test/",
        "gopher://hooks.test/",
        "unix:/run/docker.sock",
        "http+unix://%2Frun%2Fdocker.sock/x",
        "//hooks.test/",
        "hooks.test",
        "https:/hooks.test",
        "https://",
        "https:///x",
        "https://user@hooks.test/",
        "https://user:word@hooks.test/",
        "https://hooks.test@evil.test/",
        "https://evil.test\\@hooks.test/",
        "https://hooks.test/#x",
        "https://hooks.test:0/",
        "https://hooks.test:99999/",
        "https://hooks.test:x/",
        "https://hooks.test /",
        "https://hooks.test/a b",
        "https://hooks.test/\r\nX-Header: 1",
        "https://hooks.te\tst/",
        "https://hooks.test\x00/",
        "https://hooks.test./",
        "https://hooks..test/",
        "https://-hooks.test/",
        "https://hooks%2etest/",
        "https://hoöks.test/",
        "https://hooks.test\u3002evil.test/",
        "https://" + "a" * 64 + ".test/",
        "https://hooks.test/" + "a" * 2000,
        # one machine in odd spellings, which resolvers read as 127.0.0.1
        "https://0x7f.1/",
        "https://0x7f000001/",
        "https://127.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://127.0.0.0x1/",
        "https://0/",
        "https://[::1%25eth0]/",
        "https://[::1%eth0]/",
        "https://[::1/",
        "https://[v1.x]/",
        "https://[hooks.test]/",
    ],
)
def test_what_is_not_written_plainly_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(TargetRefused) as refused:
        read_url(url)
    assert "evil" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",  # metadata of most clouds
        "100.100.100.200",  # of another
        "168.63.129.16",
        "192.0.0.192",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:0:1:2:3:4:5:6",
    ],
)
def test_addresses_that_are_not_public_are_refused_unless_listed(address: str) -> None:
    with pytest.raises(TargetRefused, match="not public"):
        HostAllowList("hooks.test").check_address(address)
    HostAllowList(f"hooks.test, {address}" if ":" not in address else f"[{address}]").check_address(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111"])
def test_public_addresses_are_good(address: str) -> None:
    HostAllowList("hooks.test").check_address(address)


@pytest.mark.parametrize(
    "listed",
    ["ftp://x.test", "x.test/path", "*", "*.", "x.test:0", "x.test:99999", "10.0.0.1/8", "0x7f.1", "[x.test]", "a b@c"],
)
def test_a_list_that_cannot_be_read_says_how_to_write_it(listed: str) -> None:
    with pytest.raises(UnusableAllowList, match="write it like"):
        HostAllowList(listed)
