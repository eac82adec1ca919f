import static java.util.Map.entry;

import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeProducersResult;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What an administrator asks of a cluster of three brokers, by Kafka's own client: SERVERS PREFIX. */
public final class Administration {
    private static final Duration POLL = Duration.ofMillis(50);

    private final String servers;
    private final String topic;
    private final TopicPartition place;
    private final Admin admin;

    private Administration(String servers, String topic) {
        this.servers = servers;
        this.topic = topic;
        this.place = new TopicPartition(topic, 0);
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
    }

    public static void main(String[] arguments) throws Exception {
        Administration program = new Administration(arguments[0], arguments[1]);
        Map<String, Callable<Object>> features = new LinkedHashMap<>();
        features.put("cluster", program::cluster);
        features.put("create topics", program::createTopics);
        features.put("refusals", program::refusals);
        features.put("describe topics", program::describeTopics);
        features.put("settings", program::settings);
        features.put("offsets", program::offsets);
        features.put("log directories", program::logDirectories);
        features.put("leaders", program::leaders);
        features.put("reassignments", program::reassignments);
        features.put("groups", program::groups);
        features.put("transactions", program::transactions);
        features.put("fencing", program::fencing);
        features.put("credentials", program::credentials);
        features.put("quotas", program::quotas);
        features.put("features", program::levels);
        features.put("quorum", program::quorum);
        Facts.print(features);
        program.admin.close(Duration.ofSeconds(5));
    }

    private KafkaProducer<String, String> producer(Map<String, Object> more) {
        Map<String, Object> config = new LinkedHashMap<>(more);
        config.put("bootstrap.servers", servers);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private Object cluster() throws Exception {
        Collection<Node> nodes = admin.describeCluster().nodes().get();
        boolean controller = nodes.contains(admin.describeCluster().controller().get());
        return Map.of("nodes", nodes.size(), "the controller is one", controller,
            "has an id", !admin.describeCluster().clusterId().get().isEmpty());
    }

    private Object createTopics() throws Exception {
        NewTopic asked = new NewTopic(topic, 2, (short) 3).configs(Map.of("segment.bytes", "2000000"));
        CreateTopicsResult tried = admin.createTopics(List.of(asked), new CreateTopicsOptions().validateOnly(true));
        int before = tried.numPartitions(topic).get();
        CreateTopicsResult made = admin.createTopics(List.of(asked));
        made.all().get();
        Facts.until("all know the topic", () -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)
            .partitions().stream().allMatch(each -> each.leader() != null && each.isr().size() == 3));
        return Map.of("before", before, "partitions", made.numPartitions(topic).get(),
            "replicas", made.replicationFactor(topic).get(),
            "setting", made.config(topic).get().get("segment.bytes").value(),
            "listed", admin.listTopics().names().get().contains(topic));
    }

    private String refusal(NewTopic asked) {
        return Facts.error(() -> admin.createTopics(List.of(asked)).all().get());
    }

    private Object refusals() {
        String other = topic + "-other";
        return Map.ofEntries(
            entry("no partitions", refusal(new NewTopic(other, 0, (short) 1))),
            entry("too many replicas", refusal(new NewTopic(other, 1, (short) 9))),
            entry("a wrong setting", refusal(new NewTopic(other, 1, (short) 1).configs(Map.of("segment.bytes", "few")))),
            entry("an unknown setting", refusal(new NewTopic(other, 1, (short) 1).configs(Map.of("no.such", "1")))),
            entry("a wrong name", refusal(new NewTopic("a/b", 1, (short) 1))),
            entry("a gap in the assignment", refusal(new NewTopic(other, Map.of(1, List.of(0))))),
            entry("fewer partitions", Facts.error(() -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(1))).all().get())),
            entry("an unknown topic", Facts.error(() -> admin.deleteTopics(List.of(other)).all().get())),
            entry("an unknown id", Facts.error(() -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).allTopicIds().get())),
            entry("an offset after the end", Facts.error(() -> admin.deleteRecords(Map.of(new TopicPartition(topic, 0), RecordsToDelete.beforeOffset(99))).all().get())),
            entry("an unknown group", Facts.error(() -> admin.describeConsumerGroups(List.of(other)).all().get())),
            entry("deletion of an unknown group", Facts.error(() -> admin.deleteConsumerGroups(List.of(other)).all().get())),
            entry("an unknown transaction", Facts.error(() -> admin.describeTransactions(List.of(other)).all().get())));
    }

    private Object describeTopics() throws Exception {
        TopicDescription byName = Facts.known(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic));
        Uuid id = byName.topicId();
        TopicDescription byId = Facts.known(() -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id));
        return Map.of("name by id", byId.name().equals(topic), "partitions", byId.partitions().size(),
            "internal", byId.isInternal(),
            "replicas", byId.partitions().get(0).replicas().size());
    }

    /** The value of a setting, and where it is from. */
    private String setting(ConfigResource resource, String name) throws Exception {
        ConfigEntry found = admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name);
        return found.value() + " " + found.source();
    }

    /** Change a setting, and wait until brokers say what is expected. Another broker may hear of it later. */
    private boolean altered(ConfigResource resource, AlterConfigOp.OpType kind, String name, String value, String expected) throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, value), kind);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        Facts.until(name + " is " + expected, () -> setting(resource, name).equals(expected));
        return true;
    }

    private Object settings() throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, topic);
        String policy = "cleanup.policy";
        String timeout = "consumer.session.timeout.ms";
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("default", Facts.known(() -> setting(resource, policy)));
        found.put("append", altered(resource, AlterConfigOp.OpType.APPEND, policy, "compact", "delete,compact DYNAMIC_TOPIC_CONFIG"));
        found.put("subtract", altered(resource, AlterConfigOp.OpType.SUBTRACT, policy, "delete", "compact DYNAMIC_TOPIC_CONFIG"));
        found.put("delete", altered(resource, AlterConfigOp.OpType.DELETE, policy, null, "delete DEFAULT_CONFIG"));
        found.put("group", altered(group, AlterConfigOp.OpType.SET, timeout, "50000", "50000 DYNAMIC_GROUP_CONFIG"));
        found.put("group again", altered(group, AlterConfigOp.OpType.DELETE, timeout, null, "45000 DEFAULT_CONFIG"));
        return found;
    }

    private long offset(OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(place, spec)).all().get().get(place).offset();
    }

    private Object offsets() throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            for (long time : List.of(1_700_000_000_000L, 1_700_000_009_000L, 1_700_000_005_000L)) {
                producer.send(new ProducerRecord<>(topic, 0, time, "key", "value")).get();
            }
        }
        long deleted = admin.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(1))).lowWatermarks().get(place).get().lowWatermark();
        return Map.of("deleted before", deleted, "earliest", offset(OffsetSpec.earliest()), "latest", offset(OffsetSpec.latest()),
            "greatest time", offset(OffsetSpec.maxTimestamp()), "at a time", offset(OffsetSpec.forTimestamp(1_700_000_006_000L)),
            "after all", offset(OffsetSpec.forTimestamp(1_800_000_000_000L)));
    }

    private Object logDirectories() throws Exception {
        List<Integer> brokers = admin.describeCluster().nodes().get().stream().map(Node::id).toList();
        int replicas = 0;
        boolean filled = false;
        boolean sized = true;
        for (Map<String, LogDirDescription> directories : admin.describeLogDirs(brokers).allDescriptions().get().values()) {
            for (LogDirDescription each : directories.values()) {
                sized &= each.totalBytes().isPresent() && each.usableBytes().isPresent();
                replicas += each.replicaInfos().keySet().stream().filter(part -> part.topic().equals(topic)).count();
                filled |= each.replicaInfos().containsKey(place) && each.replicaInfos().get(place).size() > 0;
            }
        }
        return Map.of("replicas", replicas, "one has records", filled, "with sizes", sized);
    }

    private Object leaders() throws Exception {
        Map<TopicPartition, Optional<Throwable>> found = admin.electLeaders(ElectionType.PREFERRED,
            Set.of(place, new TopicPartition(topic, 9))).partitions().get();
        Map<String, String> named = new TreeMap<>();
        found.forEach((part, error) -> named.put(String.valueOf(part.partition()), error.map(each -> each.getClass().getSimpleName()).orElse("none")));
        return named;
    }

    private Object reassignments() throws Exception {
        List<Integer> replicas = Facts.known(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)
            .partitions().get(0).replicas().stream().map(Node::id).toList());
        List<Integer> fewer = List.of(replicas.get(2), replicas.get(0));
        admin.alterPartitionReassignments(Map.of(place, Optional.of(new NewPartitionReassignment(fewer)))).all().get();
        Facts.until("it is done", () -> admin.listPartitionReassignments(Set.of(place)).reassignments().get().isEmpty());
        Facts.until("it is known", () -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()
            .get(0).replicas().stream().map(Node::id).toList().equals(fewer));
        Facts.until("there is a leader", () -> fewer.contains(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)
            .partitions().get(0).leader().id()));
        String nothing = Facts.error(() -> admin.alterPartitionReassignments(Map.of(place, Optional.empty())).all().get());
        String unknown = Facts.error(() -> admin.alterPartitionReassignments(
            Map.of(place, Optional.of(new NewPartitionReassignment(List.of(77))))).all().get());
        return Map.of("nothing to cancel", nothing, "an unknown broker", unknown);
    }

    private Object groups() throws Exception {
        String group = topic + "-group";
        Map<String, Object> found = new LinkedHashMap<>();
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", group, "client.id", "reader",
            "group.instance.id", "first", "enable.auto.commit", "false");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            Facts.until("it has its partitions", () -> consumer.poll(POLL) != null && consumer.assignment().size() == 2);
            ConsumerGroupDescription live = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            var member = live.members().iterator().next();
            found.put("live", List.of(live.groupState().toString(), live.type().toString(), live.partitionAssignor(),
                live.members().size(), member.clientId(), member.groupInstanceId().orElse(""), member.assignment().topicPartitions().size(),
                live.isSimpleConsumerGroup()));
            found.put("deletion", Facts.error(() -> admin.deleteConsumerGroups(List.of(group)).all().get()));
            found.put("offsets of a live member", Facts.error(() ->
                admin.alterConsumerGroupOffsets(group, Map.of(place, new OffsetAndMetadata(2))).all().get()));
        }
        admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all().get();
        found.put("after its member", admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState().toString());
        admin.alterConsumerGroupOffsets(group, Map.of(place, new OffsetAndMetadata(2, Optional.empty(), "note"))).all().get();
        OffsetAndMetadata known = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(place);
        found.put("offset", List.of(known.offset(), known.metadata()));
        admin.deleteConsumerGroupOffsets(group, Set.of(place)).all().get();
        found.put("offsets left", admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().size());
        found.put("classic", admin.describeClassicGroups(List.of(group)).all().get().get(group).protocol());
        admin.deleteConsumerGroups(List.of(group)).all().get();
        found.put("listed", admin.listGroups().all().get().stream().anyMatch(each -> each.groupId().equals(group)));
        return found;
    }

    private TransactionDescription described(String id) throws Exception {
        return admin.describeTransactions(List.of(id)).all().get().get(id);
    }

    private Object transactions() throws Exception {
        String id = topic + "-transaction";
        Map<String, Object> found = new LinkedHashMap<>();
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", id))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 1, "key", "value")).get();
            TopicPartition written = new TopicPartition(topic, 1);
            TransactionDescription open = described(id);
            found.put("open", open.state() + " " + open.topicPartitions().equals(Set.of(written)));
            found.put("listed", admin.listTransactions().all().get().stream()
                .filter(each -> each.transactionalId().equals(id)).map(TransactionListing::state).map(Object::toString).toList());
            DescribeProducersResult.PartitionProducerState state =
                admin.describeProducers(Set.of(written)).partitionResult(written).get();
            ProducerState mine = state.activeProducers().get(0);
            found.put("producers", List.of(state.activeProducers().size(), mine.currentTransactionStartOffset().orElse(-1L), mine.lastSequence()));
            admin.abortTransaction(new AbortTransactionSpec(written, mine.producerId(), (short) mine.producerEpoch(),
                mine.coordinatorEpoch().orElse(0))).all().get();
            Facts.until("the transaction has a marker", () -> admin.describeProducers(Set.of(written)).partitionResult(written).get()
                .activeProducers().get(0).currentTransactionStartOffset().isEmpty());
        }
        return found;
    }

    private Object fencing() throws Exception {
        String id = topic + "-fenced";
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", id))) {
            producer.initTransactions();
            admin.fenceProducers(List.of(id)).all().get();
            producer.beginTransaction();
            String error = Facts.error(() -> producer.send(new ProducerRecord<>(topic, 1, "key", "value")).get());
            return Map.of("the producer", error, "state", described(id).state().toString());
        }
    }

    private Object credentials() throws Exception {
        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(topic, info, "secret"))).all().get();
        Facts.until("the user is known", () -> admin.describeUserScramCredentials().all().get().containsKey(topic));
        boolean same = admin.describeUserScramCredentials().all().get().get(topic).credentialInfos().equals(List.of(info));
        admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion(topic, ScramMechanism.SCRAM_SHA_256))).all().get();
        Facts.until("the user is gone", () -> !admin.describeUserScramCredentials().users().get().contains(topic));
        String again = Facts.error(() -> admin.alterUserScramCredentials(
            List.of(new UserScramCredentialDeletion(topic, ScramMechanism.SCRAM_SHA_256))).all().get());
        return Map.of("the same", same, "deleted again", again);
    }

    private Object quotas() throws Exception {
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, topic));
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.USER, topic)));
        Callable<Object> known = () -> admin.describeClientQuotas(filter).entities().get().getOrDefault(user, Map.of());
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(user, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all().get();
        Facts.until("the quota is known", () -> known.call().equals(Map.of("producer_byte_rate", 1e6)));
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(user, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null))))).all().get();
        Facts.until("the quota is gone", () -> known.call().equals(Map.of()));
        return Facts.error(() -> admin.alterClientQuotas(
            List.of(new ClientQuotaAlteration(user, List.of(new ClientQuotaAlteration.Op("no_such_rate", 1.0))))).all().get());
    }

    private Object levels() throws Exception {
        var found = admin.describeFeatures().featureMetadata().get();
        Set<String> finalized = new TreeSet<>(found.finalizedFeatures().keySet());
        finalized.remove("kraft.version"); // It is there if the voters of the quorum may change.
        return Map.of("finalized", finalized,
            "supported", found.supportedFeatures().keySet().containsAll(found.finalizedFeatures().keySet()));
    }

    private Object quorum() throws Exception {
        QuorumInfo found = admin.describeMetadataQuorum().quorumInfo().get();
        return found.voters().stream().anyMatch(each -> each.replicaId() == found.leaderId());
    }
}
