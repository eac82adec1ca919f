"""OAUTHBEARER tokens: an OpenID provider on loopback, token functions of every kind, and a signer for Amazon MSK."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kafka_msgs.client import AsyncClient, Client, ClientConfig, OAuthBearerCredentials
from kafka_msgs.client.oidc import ClientCredentials
from kafka_msgs.errors import AuthenticationError, ConnectionFailedError, KafkaMsgsError, OptionError
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from kafka_msgs.messages.describe_cluster_response import DescribeClusterResponse
from kafka_msgs.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafka_msgs.messages.sasl_handshake_response import SaslHandshakeResponse
from kafka_msgs.wire import encode_response, join_frames
from tests.support.faulty_server import FaultyServer, greet, receive

SECRET = "s3cr/t +?"


class Provider(ThreadingHTTPServer):
    """An OpenID provider. ``answers`` contains its next responses, each a status and a body."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, str], str]] = []
        self.answers: list[tuple[int, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/token"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.requests.append((self.path, dict(self.headers), body))
        token = {"access_token": f"token-{len(self.server.requests)}", "expires_in": 300}
        status, answer = self.server.answers.pop(0) if self.server.answers else (200, token)
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if status == 302:
            self.send_header("Location", self.server.url)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


class Broker:
    """A broker with OAUTHBEARER that accepts one kind of token."""

    def __init__(self, is_good: Callable[[str], bool]) -> None:
        self.is_good = is_good
        self.tokens: list[str] = []

    def __call__(self, connection: Any) -> None:
        greet(connection)
        while True:
            header = (frame := receive(connection)).header
            message: Any = frame.message
            name = message.INFO.name
            if name == "SaslHandshakeRequest":
                answer: Any = SaslHandshakeResponse(mechanisms=("OAUTHBEARER",))
            elif name == "SaslAuthenticateRequest":
                token = bytes(message.auth_bytes).decode().partition("Bearer ")[2].rstrip("\x01")
                self.tokens.append(token.partition("\x01")[0])
                answer = SaslAuthenticateResponse(error_code=0 if self.is_good(self.tokens[-1]) else 58)
            else:
                answer = DescribeClusterResponse(cluster_id="c", brokers=())
            version, number = header.request_api_version, header.correlation_id
            connection.sendall(join_frames(encode_response(answer, version, correlation_id=number)))


def ask_blocking(config: ClientConfig) -> str | None:
    with Client(config) as client:
        return client.call(DescribeClusterRequest()).cluster_id


def ask_async(config: ClientConfig) -> str | None:
    async def ask() -> str | None:
        async with AsyncClient(config) as client:
            return (await client.call(DescribeClusterRequest())).cluster_id

    return asyncio.run(ask())


both_forms = pytest.mark.parametrize("ask", [ask_blocking, ask_async], ids=["blocking", "asyncio"])
KAFKA = {
    "sasl.oauthbearer.client.credentials.client.id": "me",
    "sasl.oauthbearer.client.credentials.client.secret": SECRET,
    "sasl.oauthbearer.scope": "kafka read",
}
LIBRDKAFKA = {
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.scope": "kafka read",
}
JAAS = {
    "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    f'clientId="me" clientSecret="{SECRET}" scope="kafka read";'
}


@both_forms
@pytest.mark.parametrize("properties", [KAFKA, LIBRDKAFKA, JAAS], ids=["kafka", "librdkafka", "jaas"])
def test_a_token_endpoint_is_asked_with_the_client_credentials(
    provider: Provider, ask: Any, properties: dict[str, str]
) -> None:
    broker = Broker(lambda token: token == "token-1")
    with FaultyServer(broker) as server:
        config = ClientConfig.from_properties(
            {
                "bootstrap.servers": server.address,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": provider.url,
                **properties,
            }
        )
        assert ask(config) == "c"
        assert ask(config) == "c"
    (path, headers, body), *more = provider.requests
    assert not more, "a token is cached for most of its lifetime"
    assert path == "/token"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"me:s3cr%2Ft+%2B%3F"
    assert parse_qs(body) == {"grant_type": ["client_credentials"], "scope": ["kafka read"]}


def test_a_token_without_a_lifetime_is_requested_each_time(provider: Provider) -> None:
    provider.answers = [(200, {"access_token": "a"}), (200, {"access_token": "b", "expires_in": 0})]
    token = ClientCredentials(provider.url, "me", SECRET)
    assert [token(), token(), token(), token()] == ["a", "b", "token-3", "token-3"]


@pytest.mark.parametrize(
    ("answer", "error", "reason"),
    [
        (
            (401, {"error": "invalid_client", "error_description": SECRET}),
            AuthenticationError,
            r"401 \(invalid_client\)",
        ),
        ((400, {"error": f"x {SECRET}"}), AuthenticationError, "answers 400$"),
        ((302, {}), AuthenticationError, "answers 302"),
        ((200, b"not json"), AuthenticationError, "no access_token"),
        ((200, {"access_token": "a\r\nb"}), AuthenticationError, "no access_token"),
        ((200, [1]), AuthenticationError, "no access_token"),
        ((200, b'{"access_token": "' + b"x" * (1 << 20) + b'"}'), AuthenticationError, "no access_token"),
        ((503, SECRET.encode()), ConnectionFailedError, "answers 503"),
        ((429, {}), ConnectionFailedError, "answers 429"),
    ],
)
def test_a_provider_that_refuses_is_an_error_that_shows_no_secret(
    provider: Provider, answer: tuple[int, Any], error: type[KafkaMsgsError], reason: str
) -> None:
    provider.answers = [answer]
    token = ClientCredentials(provider.url, "me", SECRET)
    with pytest.raises(error, match=reason) as caught:
        token()
    assert SECRET not in f"{caught.value!r} {vars(caught.value)} {token!r}"
    assert len(provider.requests) == 1


def test_a_provider_that_is_not_there_passes() -> None:
    with pytest.raises(ConnectionFailedError, match=r"127\.0\.0\.1:1: authenticate: the token endpoint: ") as caught:
        ClientCredentials("http://127.0.0.1:1/", "me", SECRET)()
    assert caught.value.retriable


@pytest.mark.parametrize("url", ["ftp://idp/", "https://", f"https://me:{SECRET[:3]}@idp/token", "idp"])
def test_another_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(OptionError, match="expected an address of HTTP") as caught:
        ClientCredentials(url, "me", SECRET)
    assert caught.value.value is None


def test_credentials_for_an_endpoint_without_tls_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    ClientCredentials("http://idp.test/token", "me", SECRET)
    assert "the token endpoint gets credentials without TLS" in caplog.text
    assert SECRET not in caplog.text


@both_forms
def test_a_function_that_blocks_is_called_in_a_helper_thread(ask: Any) -> None:
    threads: list[str] = []

    def token() -> str:
        threads.append(threading.current_thread().name)
        return "t"

    with FaultyServer(Broker(lambda token: token == "t")) as server:
        assert ask(ClientConfig(bootstrap_servers=server.address, credentials=OAuthBearerCredentials(token))) == "c"
    assert threads == ["kafka-msgs-helper"]


def test_a_coroutine_function_is_awaited_on_asyncio_and_refused_elsewhere() -> None:
    async def token() -> str:
        await asyncio.sleep(0)
        return "t"

    with FaultyServer(Broker(lambda token: token == "t")) as server:
        assert (
            ask_async(ClientConfig(bootstrap_servers=server.address, credentials=OAuthBearerCredentials(token))) == "c"
        )
        with pytest.raises(OptionError, match="expected a str"):
            ask_blocking(ClientConfig(bootstrap_servers=server.address, credentials=OAuthBearerCredentials(token)))


# Amazon MSK: the token is a signed URL. See the how-to page for the recipe.

KEYS = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
HOST = "kafka.eu-west-1.amazonaws.com"


def sign_url(at: str | None = None) -> str:
    """Return the URL of the AWS signer: a signed query for ``kafka-cluster:Connect``."""
    auth: Any = import_module("botocore.auth")
    aws: Any = import_module("botocore.awsrequest")
    keys: Any = import_module("botocore.credentials")
    request = aws.AWSRequest("GET", f"https://{HOST}/", params={"Action": "kafka-cluster:Connect"})
    signer = auth.SigV4QueryAuth(keys.Credentials(*KEYS), "kafka-cluster", "eu-west-1", expires=900)
    if at is not None:
        signer.add_auth = _at(signer, at)
    signer.add_auth(request)
    return str(request.url)


def _at(signer: Any, at: str) -> Callable[[Any], None]:
    def add_auth(request: Any) -> None:
        request.context["timestamp"] = at
        signer._modify_request_before_signing(request)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        signer._inject_signature_to_request(request, signer.signature(text, request))

    return add_auth


def msk_token() -> str:
    """Return a token in the format of ``aws_msk_iam_sasl_signer``: the signed URL in base64url, without padding."""
    url = f"{sign_url()}&User-Agent=recipe"
    return base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode()


def is_signed(token: str) -> bool:
    """Return whether our keys signed the URL for this action, as an MSK broker would check."""
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode().removesuffix("&User-Agent=recipe")
    query = parse_qs(urlsplit(url).query)
    return url == sign_url(query["X-Amz-Date"][0]) and query["Action"] == ["kafka-cluster:Connect"]


@both_forms
def test_the_recipe_for_msk_signs_in(ask: Any) -> None:
    with FaultyServer(Broker(is_signed)) as server:
        config = ClientConfig(bootstrap_servers=server.address, credentials=OAuthBearerCredentials(msk_token))
        assert ask(config) == "c"
    assert not is_signed(base64.urlsafe_b64encode(sign_url().replace("Connect", "Other").encode()).decode())
