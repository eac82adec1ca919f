"""OAUTHBEARER: unsecured and signed tokens, their claims, their expiry, and clients that use them."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from kafka_msgs.admin import Admin
from kafka_msgs.broker import EmbeddedBroker, ListenerConfig, ManualClock
from kafka_msgs.client import Client, ClientConfig, OAuthBearerCredentials
from kafka_msgs.errors import AuthenticationError, ConnectionFailedError, MissingExtraError, OptionError
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from kafka_msgs.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_msgs.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.support.virtual_brokers import START, VirtualCluster

WAIT: Final = 30
SASL: Final = ListenerConfig(name="SASL", protocol="SASL_PLAINTEXT")
NOW: Final = START // 1000
MECHANISM: Final = {"sasl.enabled.mechanisms": "OAUTHBEARER"}


def part(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsecured(header: Mapping[str, Any] | None = None, signature: str = "", **claims: Any) -> str:
    """Return an unsecured token with the claims of a valid one, and other claims."""
    known = {"sub": "alice", "iat": NOW, "exp": NOW + 3600}
    return f"{part({'alg': 'none'} if header is None else header)}.{part(known | claims)}.{signature}"


def authenticate(cluster: VirtualCluster, token: str, before: str = "n,,") -> Any:
    """Authenticate with a token. Return the last response."""
    cluster.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    message = f"{before}\x01auth=Bearer {token}\x01\x01".encode()
    answer = cluster.call(SaslAuthenticateRequest(auth_bytes=message), 2)
    if answer.auth_bytes:
        assert answer.auth_bytes == b'{"status":"invalid_token"}'
        answer = cluster.call(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
    return answer


def new_cluster(**configs: str) -> VirtualCluster:
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    return VirtualCluster.start(listeners=(SASL,), configs=MECHANISM | settings)


def test_the_subject_of_an_unsecured_token_is_the_user() -> None:
    cluster = new_cluster()
    answer = authenticate(cluster, unsecured())
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 3_600_000)
    assert str(cluster.sessions[0].principal) == "User:alice"


def test_a_session_ends_with_its_token() -> None:
    cluster = new_cluster(connections_max_reauth_ms="10000000")
    assert authenticate(cluster, unsecured(exp=NOW + 60)).session_lifetime_ms == 60_000
    cluster.advance(59_999)
    assert cluster.call(DescribeClusterRequest(), 0).error_code == 0
    cluster.advance(1)
    assert cluster.ask(DescribeClusterRequest(), 0).closed


@pytest.mark.parametrize(
    "token",
    [
        unsecured(sub=""),
        unsecured(sub=7),
        unsecured(exp=None),
        unsecured(exp=True),
        unsecured(exp="soon"),
        unsecured(exp=NOW - 31),
        unsecured(exp=1e300),
        unsecured(exp=float("nan")),
        unsecured(iat=NOW + 31),
        unsecured(iat=NOW + 20, exp=NOW + 10),
        unsecured(scope=7),
        unsecured(scope=["a", 7]),
        unsecured(aud=[7]),
        unsecured(header={"alg": "RS256"}),
        unsecured(header={}),
        unsecured(signature=part(b"signed")),
        "a.b",
        "e30.e30.",
        f"{part({'alg': 'none'})}.{part([])}.",
        f"{part({'alg': 'none'})}.{part(b'[' * 100_000)}.",
        f"{part({'alg': 'none'})}.A.",
    ],
)
def test_invalid_tokens_are_refused(token: str) -> None:
    answer = authenticate(new_cluster(), token)
    assert (answer.error_code, answer.error_message) == (58, '{"status":"invalid_token"}')


@pytest.mark.parametrize(
    ("configs", "claims", "accepted"),
    [
        ({"sasl_oauthbearer_expected_issuer": "us"}, {"iss": "us"}, True),
        ({"sasl_oauthbearer_expected_issuer": "us"}, {"iss": "them"}, False),
        ({"sasl_oauthbearer_expected_audience": "a,b"}, {"aud": "b"}, True),
        ({"sasl_oauthbearer_expected_audience": "a,b"}, {"aud": ["c", "a"]}, True),
        ({"sasl_oauthbearer_expected_audience": "a,b"}, {"aud": "c"}, False),
        ({"sasl_oauthbearer_expected_audience": "a,b"}, {}, False),
        ({"sasl_oauthbearer_sub_claim_name": "client"}, {"client": "alice"}, True),
        ({"sasl_oauthbearer_sub_claim_name": "client"}, {}, False),
        ({"sasl_oauthbearer_clock_skew_seconds": "60"}, {"iat": NOW - 50, "exp": NOW - 40}, True),
        ({"sasl_oauthbearer_clock_skew_seconds": "0"}, {"exp": NOW - 1}, False),
    ],
)
def test_configs_decide_which_claims_are_accepted(
    configs: dict[str, str], claims: dict[str, Any], accepted: bool
) -> None:
    assert (authenticate(new_cluster(**configs), unsecured(**claims)).error_code == 0) == accepted


@pytest.mark.parametrize(
    ("before", "error"),
    [("n,a=alice,", None), ("n,a=bob,", "different from the token's principal name"), ("y,,", "invalid credentials")],
)
def test_a_client_acts_as_nobody_else(before: str, error: str | None) -> None:
    answer = authenticate(new_cluster(), unsecured(), before)
    assert (answer.error_code == 0) == (error is None)
    assert error is None or error in answer.error_message


class Authority:
    """An authority with an RSA and an elliptic curve key, written by joserfc."""

    def __init__(self, folder: Path) -> None:
        self.keys: dict[str, RSAKey | ECKey] = {
            "RS256": RSAKey.generate_key(2048, {"kid": "rsa"}),
            "ES256": ECKey.generate_key("P-256", {"kid": "ec"}),
        }
        self.file = folder / "keys.json"
        others = [ECKey.generate_key("P-384", {"kid": "other"})]
        self.file.write_text(json.dumps(KeySet([*self.keys.values(), *others]).as_dict(private=False)))
        self.configs = {"sasl.oauthbearer.jwks.endpoint.url": self.file.as_uri()}

    def token(self, algorithm: str, key: Any = None, header: Mapping[str, Any] = {}, **claims: Any) -> str:
        known = {"sub": "alice", "iat": NOW, "exp": NOW + 3600}
        key = key or self.keys[algorithm]
        return jwt.encode({"alg": algorithm, "kid": key.kid, **header}, known | claims, key)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_signed_tokens_are_accepted(authority: Authority, algorithm: str) -> None:
    cluster = VirtualCluster.start(listeners=(SASL,), configs=MECHANISM | authority.configs)
    assert authenticate(cluster, authority.token(algorithm)).error_code == 0


def test_tokens_of_nobody_else_are_accepted(authority: Authority) -> None:
    stranger = RSAKey.generate_key(2048, {"kid": "rsa"})
    good = authority.token("ES256")
    refused = [
        unsecured(),
        authority.token("RS256", stranger),
        authority.token("RS256", header={"kid": "ec"}),
        authority.token("RS256", iat=None),
        authority.token("RS256", exp=NOW - 100),
        good[:-4],
        f"{good.rpartition('.')[0]}.{part(bytes(64))}",
        f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{good.split('.')[1]}.{good.split('.')[2]}",
    ]
    for token in refused:
        cluster = VirtualCluster.start(listeners=(SASL,), configs=MECHANISM | authority.configs)
        assert authenticate(cluster, token).error_code == 58, token


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"keys": [{"kty": "RSA"}]}', '{"keys": [{"kty": "RSA", "n": "!", "e": ""}]}']
)
def test_a_file_without_keys_is_an_error_at_the_start(tmp_path: Path, content: str) -> None:
    (tmp_path / "keys.json").write_text(content)
    for url in ((tmp_path / "keys.json").as_uri(), (tmp_path / "none.json").as_uri(), "https://localhost/keys"):
        with pytest.raises(OptionError, match=r"jwks\.endpoint\.url"):
            EmbeddedBroker(configs=MECHANISM | {"sasl.oauthbearer.jwks.endpoint.url": url}).start()


def test_a_missing_extra_is_an_error_at_the_start(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(MissingExtraError, match=r"kafka-msgs\[oauth\]"):
        EmbeddedBroker(configs=MECHANISM | authority.configs).start()


@contextmanager
def broker_of(configs: dict[str, str]) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(listeners=(SASL,), configs=MECHANISM | configs, clock=ManualClock(START)) as broker:
        yield broker
        assert broker.problems == []


def test_our_client_authenticates_and_learns_that_it_cannot(authority: Authority) -> None:
    with broker_of({"connection.failed.authentication.delay.ms": "0", **authority.configs}) as broker:
        for token, accepted in ((authority.token("RS256"), True), (unsecured(), False)):
            credentials = OAuthBearerCredentials(partial(str, token))
            config = ClientConfig(bootstrap_servers=broker.bootstrap_servers, credentials=credentials, timeout=WAIT)
            with Client(config) as client:
                if accepted:
                    assert client.call(DescribeClusterRequest()).error_code == 0
                else:
                    with pytest.raises((AuthenticationError, ConnectionFailedError)):
                        client.call(DescribeClusterRequest())


def _librdkafka_token(token: str, expires: int, _: str) -> tuple[str, int]:
    return token, expires


def test_librdkafka_authenticates_with_signed_and_unsecured_tokens(authority: Authority) -> None:
    claims: dict[str, Any] = {"iat": int(time.time()), "exp": int(time.time()) + 3600}
    places: list[tuple[dict[str, str], str]] = [
        (authority.configs, authority.token("ES256", **claims)),
        ({}, unsecured(**claims)),
    ]
    for configs, token in places:
        with EmbeddedBroker(listeners=(SASL,), configs=MECHANISM | configs) as broker:
            producer = confluent_kafka.Producer(
                {
                    "bootstrap.servers": broker.bootstrap_servers,
                    "security.protocol": "SASL_PLAINTEXT",
                    "sasl.mechanism": "OAUTHBEARER",
                    "oauth_cb": partial(_librdkafka_token, token, claims["exp"]),
                }
            )
            assert producer.list_topics(timeout=WAIT).brokers
            assert broker.problems == []


def test_oauthbearer_is_off_by_default() -> None:
    credentials = OAuthBearerCredentials(unsecured)
    with EmbeddedBroker(listeners=(SASL,)) as broker:
        config = ClientConfig(bootstrap_servers=broker.bootstrap_servers, credentials=credentials, timeout=WAIT)
        with Admin(config) as admin, pytest.raises(AuthenticationError, match="the broker offers PLAIN"):
            admin.list_topics()
