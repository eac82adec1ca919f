import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The session of tests/broker/clients/features.py, by Kafka's own clients: kafka-clients SERVERS SERVERS_WITH_LOGIN
 * PREFIX. A line of JSON for each feature has the facts that were found, or the error.
 */
public final class Session {
    private static final long START = 1_700_000_000_000L;
    private static final int BATCH = 20;
    private static final int PARTITIONS = 4;
    private static final Duration POLL = Duration.ofMillis(50);

    private final String servers;
    private final String login;
    private final String prefix;
    private final Admin admin;

    private Session(String servers, String login, String prefix) {
        this.servers = servers;
        this.login = login;
        this.prefix = prefix;
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
    }

    public static void main(String[] arguments) throws Exception {
        Session session = new Session(arguments[1], arguments[2], arguments[3]);
        Facts.print(session.features());
        session.admin.close(Duration.ofSeconds(5));
    }

    private Map<String, Callable<Object>> features() {
        Map<String, Callable<Object>> features = new LinkedHashMap<>();
        features.put("records", this::records);
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
            features.put(codec, () -> batch(codec, Map.of("compression.type", codec)));
        }
        features.put("idempotence", () -> batch("idempotence", Map.of("enable.idempotence", "true")));
        features.put("group", () -> group("group", "classic"));
        features.put("consumer-group", () -> group("consumer-group", "consumer"));
        features.put("transactions", this::transactions);
        features.put("transactional-offsets", this::transactionalOffsets);
        features.put("times", this::times);
        features.put("topics", this::topics);
        features.put("groups", this::groups);
        features.put("delete-records", this::deleteRecords);
        features.put("acls", this::acls);
        features.put("logins", this::logins);
        return features;
    }

    private String name(String suffix) {
        return prefix + "-" + suffix;
    }

    private Map<String, Object> config(Map<String, String> more) {
        Map<String, Object> config = new LinkedHashMap<>(Map.of("bootstrap.servers", servers));
        config.putAll(more);
        return config;
    }

    private KafkaProducer<String, String> producer(Map<String, String> more) {
        return new KafkaProducer<>(config(more), new StringSerializer(), new StringSerializer());
    }

    private KafkaConsumer<String, String> consumer(Map<String, String> more) {
        Map<String, Object> config = config(more);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("fetch.max.wait.ms", "100");
        if (!config.getOrDefault("group.protocol", "classic").equals("consumer")) {
            config.put("heartbeat.interval.ms", "200"); // A broker decides it for members of KIP-848.
        }
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private void send(KafkaProducer<String, String> producer, String topic, int partition, String value, int count) {
        for (int number = 0; number < count; number++) {
            producer.send(new ProducerRecord<>(name(topic), partition, null, value));
        }
        producer.flush();
    }

    private List<ConsumerRecord<String, String>> read(String topic, int count, String isolation) throws Exception {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(Map.of("isolation.level", isolation))) {
            consumer.assign(List.of(new TopicPartition(name(topic), 0)));
            Facts.until(count + " records", () -> {
                consumer.poll(POLL).forEach(found::add);
                return found.size() >= count;
            });
        }
        return found;
    }

    private Object records() throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            for (int n = 0; n < 3; n++) {
                ProducerRecord<String, String> sent = new ProducerRecord<>(name("records"), 0, START + n, "k" + n, "v" + n);
                sent.headers().add("h", ("h" + n).getBytes());
                producer.send(sent).get();
            }
        }
        List<Object> found = new ArrayList<>();
        for (ConsumerRecord<String, String> each : read("records", 3, "read_uncommitted")) {
            found.add(Map.of("offset", each.offset(), "key", each.key(), "value", each.value(), "timestamp",
                each.timestamp(), "header", new String(each.headers().lastHeader("h").value())));
        }
        return found;
    }

    private Object batch(String topic, Map<String, String> config) throws Exception {
        Map<String, String> all = new LinkedHashMap<>(config);
        all.put("linger.ms", "100");
        try (KafkaProducer<String, String> producer = producer(all)) {
            send(producer, topic, 0, "the same value again and again", BATCH);
        }
        return read(topic, BATCH, "read_uncommitted").size();
    }

    /** A member of a group: what it owns, and what it has read of that. */
    private final class Member implements AutoCloseable {
        private final KafkaConsumer<String, String> consumer;
        private final Map<TopicPartition, Set<Long>> read = new LinkedHashMap<>();

        private Member(String topic, String protocol) {
            consumer = consumer(Map.of("group.id", name(topic), "group.protocol", protocol));
            consumer.subscribe(List.of(name(topic)));
        }

        private int owned() {
            for (ConsumerRecord<String, String> each : consumer.poll(POLL)) {
                TopicPartition place = new TopicPartition(each.topic(), each.partition());
                read.computeIfAbsent(place, key -> new HashSet<>()).add(each.offset());
            }
            read.keySet().retainAll(consumer.assignment());
            return consumer.assignment().size();
        }

        private int count() {
            owned();
            return read.values().stream().mapToInt(Set::size).sum();
        }

        @Override
        public void close() {
            consumer.close();
        }
    }

    private Object group(String topic, String protocol) throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        try (KafkaProducer<String, String> producer = producer(Map.of()); Member first = new Member(topic, protocol)) {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                send(producer, topic, partition, "value", 10);
            }
            Facts.until("one member has all", () -> first.owned() == PARTITIONS);
            try (Member second = new Member(topic, protocol)) {
                Facts.until("each has a half", () -> first.owned() == 2 & second.owned() == 2);
            }
            Facts.until("the first has all again", () -> first.owned() == PARTITIONS);
            Facts.until("everything is read", () -> first.count() == 10 * PARTITIONS);
            found.put("read", first.count());
            first.consumer.commitSync();
        }
        try (KafkaProducer<String, String> producer = producer(Map.of()); Member next = new Member(topic, protocol)) {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                send(producer, topic, partition, "value", 2);
            }
            Facts.until("new records are read", () -> next.count() >= 2 * PARTITIONS);
            found.put("read later", next.count());
            found.put("resumed at", next.read.values().stream().flatMap(Set::stream).min(Long::compare).get());
            next.consumer.commitSync();
        }
        return found;
    }

    private Object transactions() throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", name("transactions")))) {
            producer.initTransactions();
            for (String end : List.of("commit", "abort", "commit")) {
                producer.beginTransaction();
                send(producer, "transactions", 0, end, 5);
                if (end.equals("commit")) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        List<ConsumerRecord<String, String>> committed = read("transactions", 10, "read_committed");
        long aborted = committed.stream().filter(each -> each.value().equals("abort")).count();
        int all = read("transactions", 15, "read_uncommitted").size();
        return Map.of("committed", committed.size(), "aborted among them", aborted, "all", all);
    }

    /** Reads in a group, and sends its offsets with a transaction. */
    private Object transactionalOffsets() throws Exception {
        String group = name("transactional-offsets");
        TopicPartition place = new TopicPartition(name("source"), 0);
        Map<String, Object> found = new LinkedHashMap<>();
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", name("pipe")));
                KafkaConsumer<String, String> consumer = consumer(Map.of("group.id", group))) {
            producer.initTransactions();
            consumer.subscribe(List.of(place.topic()));
            Facts.until("ten records are read", () -> {
                consumer.poll(POLL);
                return consumer.assignment().contains(place) && consumer.position(place) == 10;
            });
            for (String end : List.of("abort", "commit")) {
                producer.beginTransaction();
                send(producer, "sink", 0, "value", 10);
                Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(place, new OffsetAndMetadata(10));
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (end.equals("commit")) {
                    producer.commitTransaction();
                    Facts.until("the offset is known", () -> committed(group, place) != -1);
                } else {
                    producer.abortTransaction();
                }
                found.put(end, committed(group, place));
            }
        }
        return found;
    }

    private long committed(String group, TopicPartition place) throws Exception {
        OffsetAndMetadata found = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(place);
        return found == null ? -1 : found.offset();
    }

    private Object times() throws Exception {
        TopicPartition place = new TopicPartition(name("records"), 0);
        return admin.listOffsets(Map.of(place, OffsetSpec.forTimestamp(START + 1))).all().get().get(place).offset();
    }

    private Object topics() throws Exception {
        String topic = name("admin");
        NewTopic asked = new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "3600000"));
        admin.createTopics(List.of(asked)).all().get();
        Map<String, Object> found = new LinkedHashMap<>();
        try {
            admin.createTopics(List.of(asked)).all().get();
        } catch (ExecutionException error) {
            found.put("again", error.getCause() instanceof TopicExistsException);
        }
        Facts.until("the topic is known", () -> count(topic) == 2);
        found.put("retention", retention(topic));
        AlterConfigOp longer = new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic), List.of(longer))).all().get();
        Facts.until("the setting is known", () -> retention(topic).equals("7200000"));
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
        Facts.until("there are more partitions", () -> count(topic) == 4);
        admin.deleteTopics(List.of(topic)).all().get();
        Facts.until("the topic is gone", () -> count(topic) == 0);
        return found;
    }

    private int count(String topic) throws Exception {
        try {
            return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                return 0;
            }
            throw error;
        }
    }

    private String retention(String topic) throws Exception {
        ConfigResource asked = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        return admin.describeConfigs(List.of(asked)).all().get().get(asked).get("retention.ms").value();
    }

    private boolean listed() throws Exception {
        List<GroupListing> found = List.copyOf(admin.listGroups(ListGroupsOptions.forConsumerGroups()).all().get());
        return found.stream().anyMatch(each -> each.groupId().equals(name("group")));
    }

    private Object groups() throws Exception {
        String group = name("group");
        boolean was = listed();
        String state = admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState().toString();
        Map<TopicPartition, OffsetAndMetadata> offsets =
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        long sum = offsets.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
        admin.deleteConsumerGroups(List.of(group)).all().get();
        return Map.of("listed", was, "state", state, "offsets", sum, "deleted", !listed());
    }

    private Object deleteRecords() throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            send(producer, "delete", 0, "value", 10);
        }
        TopicPartition place = new TopicPartition(name("delete"), 0);
        admin.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(4))).all().get();
        return admin.listOffsets(Map.of(place, OffsetSpec.earliest())).all().get().get(place).offset();
    }

    private Object acls() throws Exception {
        AclBinding rule = new AclBinding(new ResourcePattern(ResourceType.TOPIC, name("acl"), PatternType.PREFIXED),
            new AccessControlEntry("User:" + prefix, "*", AclOperation.READ, AclPermissionType.ALLOW));
        admin.createAcls(List.of(rule)).all().get();
        Facts.until("the rule is known", () -> admin.describeAcls(rule.toFilter()).values().get().equals(List.of(rule)));
        int deleted = admin.deleteAcls(List.of(rule.toFilter())).all().get().size();
        Facts.until("the rule is gone", () -> admin.describeAcls(rule.toFilter()).values().get().isEmpty());
        return deleted;
    }

    private Object logins() throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        for (String mechanism : List.of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")) {
            attempt(mechanism, "alice-secret");
            try {
                attempt(mechanism, "wrong");
            } catch (ExecutionException error) {
                found.put(mechanism, error.getCause() instanceof SaslAuthenticationException);
            }
        }
        return found;
    }

    private void attempt(String mechanism, String password) throws Exception {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        String jaas = "org.apache.kafka.common.security." + module + " required username=\"alice\" password=\"" + password + "\";";
        try (Admin client = Admin.create(Map.of("bootstrap.servers", login, "security.protocol", "SASL_PLAINTEXT",
                "sasl.mechanism", mechanism, "sasl.jaas.config", jaas))) {
            client.describeCluster().nodes().get();
        }
    }
}
