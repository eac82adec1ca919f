"""The test clusters: every listener serves, nodes stop and restart, and cleanup is complete."""

from __future__ import annotations

import json
import socket
import ssl

import pytest
from confluent_kafka.admin import AdminClient

from kafka_msgs import MetadataRequest, MetadataResponse
from tests.recorders.broker import BrokerError
from tests.recorders.raw_client import Conversation
from tests.support.kafka_cluster import ClusterAddresses, KafkaCluster
from tests.support.kafka_listeners import HOST, Listener
from tests.support.shared_cluster import BreakableCluster, Turns


def _brokers(port: int) -> set[int]:
    with Conversation(port, client_id="look") as conversation:
        answer = conversation.ask(MetadataRequest(topics=()), 12)
    assert isinstance(answer, MetadataResponse)
    return {each.node_id for each in answer.brokers}


def test_every_node_of_the_shared_cluster_knows_the_others(kafka_cluster: ClusterAddresses) -> None:
    """Three brokers, each with its listeners; a second use returns the same cluster."""
    assert kafka_cluster.nodes == (1, 2, 3)
    assert all(_brokers(kafka_cluster.port(node)) == {1, 2, 3} for node in kafka_cluster.nodes)
    assert ClusterAddresses.from_json(kafka_cluster.to_json()).ports == kafka_cluster.ports


@pytest.mark.parametrize("listener", [Listener.SSL, Listener.SASL_SSL])
def test_nodes_show_a_certificate_that_the_authority_signed(
    kafka_cluster: ClusterAddresses, listener: Listener
) -> None:
    """Clients that trust the cluster's authority get a verified connection; clients that trust another fail."""
    port = kafka_cluster.port(2, listener)
    trusting = ssl.create_default_context(cafile=str(kafka_cluster.certificates.authority))
    with socket.create_connection((HOST, port)) as plain, trusting.wrap_socket(plain, server_hostname=HOST) as tls:
        assert tls.version() == "TLSv1.3"
    wary = ssl.create_default_context(cafile=str(kafka_cluster.certificates.other_authority))
    with socket.create_connection((HOST, port)) as plain, pytest.raises(ssl.SSLCertVerificationError):
        wary.wrap_socket(plain, server_hostname="localhost")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
@pytest.mark.parametrize("listener", [Listener.SASL_PLAINTEXT, Listener.SASL_SSL, Listener.REAUTHENTICATING])
def test_users_log_in_with_every_mechanism(kafka_cluster: ClusterAddresses, listener: Listener, mechanism: str) -> None:
    """A librdkafka client logs in as one of the cluster's users and sees all nodes."""
    admin = AdminClient(
        {
            "bootstrap.servers": kafka_cluster.bootstrap(listener),
            "security.protocol": listener.protocol,
            "ssl.ca.location": str(kafka_cluster.certificates.authority),
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": kafka_cluster.users["alice"],
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "principal=admin",
        }
    )
    assert set(admin.list_topics(timeout=20).brokers) == {1, 2, 3}


@pytest.mark.parametrize("turn", ["breaks", "has it next"])
def test_what_one_test_breaks_is_whole_for_the_next_one(breakable_kafka_cluster: BreakableCluster, turn: str) -> None:
    """Nodes are killed, started and frozen; the other nodes detect it."""
    cluster = breakable_kafka_cluster
    assert [_brokers(cluster.port(node)) for node in cluster.nodes] == [{1, 2, 3}] * 3
    if turn == "has it next":
        return
    cluster.kill(2)
    with pytest.raises(ConnectionRefusedError):
        _brokers(cluster.port(2))
    cluster.start(2)
    assert _brokers(cluster.port(2)) == {1, 2, 3}
    cluster.kill(1)
    cluster.pause(2)


class PaperCluster(KafkaCluster):
    """Addresses without nodes; the second repair fails."""

    made = 0

    def __enter__(self) -> PaperCluster:
        PaperCluster.made += 1
        self.repairs = 0
        return self

    def repair(self) -> None:
        """Fail the second time."""
        self.repairs += 1
        if self.repairs == 2:
            raise BrokerError("beyond repair")

    def kill(self, node: int) -> None:
        """Raise an error for a node that does not exist."""
        if node not in self.nodes:
            raise BrokerError(f"no node {node}")


def test_a_cluster_beyond_repair_is_replaced_and_the_last_turn_ends_it() -> None:
    def turn(*questions: tuple[str, int]) -> list[str]:
        """Return the supervisor's responses to a test that sends requests and disconnects."""
        test, supervisor = socket.socketpair()
        with test, supervisor:
            test.sendall("".join(json.dumps(each) + "\n" for each in questions).encode())
            test.shutdown(socket.SHUT_WR)
            turns.give(supervisor)
            supervisor.close()
            return [next(iter(json.loads(line))) for line in test.makefile("r")]

    PaperCluster.made = 0
    with Turns(4, PaperCluster) as turns:
        assert turn() == ["done"]
        assert turn(("kill", 1), ("kill", 9)) == ["done", "done", "error"]
        assert PaperCluster.made == 1
        assert turn() == ["done"]
        assert PaperCluster.made == 2
        assert turn() == ["done"]
        assert turn() == ["done"], "a turn that was not announced"
    assert PaperCluster.made == 3
