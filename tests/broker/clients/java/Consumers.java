import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What Kafka's own consumer does beyond a session: assignors, static members, patterns, positions: SERVERS PREFIX. */
public final class Consumers {
    private static final int PARTITIONS = 4;
    private static final long START = 1_700_000_000_000L;
    private static final Duration POLL = Duration.ofMillis(50);
    private static final String ASSIGNORS = "org.apache.kafka.clients.consumer.";

    private final String servers;
    private final String topic;
    private final Admin admin;

    private Consumers(String servers, String prefix) throws Exception {
        this.servers = servers;
        this.topic = prefix + "-first";
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
        List<NewTopic> topics = List.of(new NewTopic(topic, PARTITIONS, (short) 1), new NewTopic(prefix + "-second", 1, (short) 1));
        admin.createTopics(topics).all().get();
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            for (int number = 0; number < 10; number++) {
                producer.send(new ProducerRecord<>(topic, 0, START + number, "key", "value " + number)).get();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Consumers program = new Consumers(arguments[0], arguments[1]);
        Map<String, Callable<Object>> features = new LinkedHashMap<>();
        for (String assignor : List.of("Range", "RoundRobin", "Sticky", "CooperativeSticky")) {
            String class_ = ASSIGNORS + assignor + "Assignor";
            features.put(assignor, () -> shared(program, assignor, Map.of("partition.assignment.strategy", class_)));
        }
        for (String assignor : List.of("uniform", "range")) {
            Map<String, Object> config = Map.of("group.protocol", "consumer", "group.remote.assignor", assignor);
            features.put("KIP-848 " + assignor, () -> shared(program, "new-" + assignor, config));
        }
        for (String protocol : List.of("classic", "consumer")) {
            features.put("static member, " + protocol, () -> program.staticMember(protocol));
        }
        features.put("pattern of the client", () -> program.pattern("classic"));
        features.put("pattern of the broker", () -> program.pattern("consumer"));
        features.put("positions", program::positions);
        features.put("open transactions", program::openTransactions);
        features.put("migration", program::migration);
        Facts.print(features);
        program.admin.close(Duration.ofSeconds(5));
    }

    private static Object shared(Consumers program, String name, Map<String, Object> config) throws Exception {
        return program.halves(name, config);
    }

    private KafkaProducer<String, String> producer(Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", servers);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private KafkaConsumer<String, String> consumer(String group, Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", servers);
        config.put("group.id", topic + "-" + group);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("fetch.max.wait.ms", "100");
        if (!config.getOrDefault("group.protocol", "classic").equals("consumer")) {
            config.put("heartbeat.interval.ms", "200"); // A broker decides it for members of KIP-848.
        }
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static Set<TopicPartition> polled(KafkaConsumer<String, String> consumer) {
        consumer.poll(POLL);
        return consumer.assignment();
    }

    /** Two members with a half each; then one has all. The group as the administrator sees it. */
    private Object halves(String group, Map<String, Object> config) throws Exception {
        String name = topic + "-" + group;
        Map<String, Object> found = new LinkedHashMap<>();
        try (KafkaConsumer<String, String> first = consumer(group, config)) {
            first.subscribe(List.of(topic));
            Facts.until("one has all", () -> polled(first).size() == PARTITIONS);
            try (KafkaConsumer<String, String> second = consumer(group, config)) {
                second.subscribe(List.of(topic));
                Facts.until("each has a half", () -> polled(first).size() == 2 & polled(second).size() == 2);
                Set<TopicPartition> both = new HashSet<>(first.assignment());
                both.addAll(second.assignment());
                found.put("together", both.size());
                var group_ = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
                found.put("described", List.of(group_.type().toString(), group_.partitionAssignor(), group_.members().size()));
            }
            Facts.until("one has all again", () -> polled(first).size() == PARTITIONS);
        }
        return found;
    }

    /** A static member that comes back has its place: the other one keeps its partitions and its generation. */
    private Object staticMember(String protocol) throws Exception {
        String group = "static-" + protocol;
        Map<String, Object> config = new HashMap<>(Map.of("group.protocol", protocol));
        Map<String, Object> named = new HashMap<>(config);
        named.put("group.instance.id", "second");
        try (KafkaConsumer<String, String> first = consumer(group, config)) {
            first.subscribe(List.of(topic));
            Set<TopicPartition> had = new HashSet<>();
            try (KafkaConsumer<String, String> second = consumer(group, named)) {
                second.subscribe(List.of(topic));
                Facts.until("each has a half", () -> polled(first).size() == 2 & polled(second).size() == 2);
                had.addAll(second.assignment());
            }
            Set<TopicPartition> before = new HashSet<>(first.assignment());
            try (KafkaConsumer<String, String> second = consumer(group, named)) {
                second.subscribe(List.of(topic));
                Facts.until("it is back", () -> polled(second).size() == 2);
                return List.of(had.equals(second.assignment()), before.equals(polled(first)));
            }
        }
    }

    private Object pattern(String protocol) throws Exception {
        String prefix = topic.substring(0, topic.length() - "first".length());
        try (KafkaConsumer<String, String> consumer = consumer("pattern-" + protocol, Map.of("group.protocol", protocol))) {
            if (protocol.equals("consumer")) {
                consumer.subscribe(new SubscriptionPattern(prefix + ".*"));
            } else {
                consumer.subscribe(java.util.regex.Pattern.compile(prefix + ".*"));
            }
            Facts.until("it has both topics", () -> polled(consumer).size() == PARTITIONS + 1);
            return consumer.assignment().size();
        }
    }

    private Object positions() throws Exception {
        TopicPartition place = new TopicPartition(topic, 0);
        Map<String, Object> found = new LinkedHashMap<>();
        try (KafkaConsumer<String, String> consumer = consumer("positions", Map.of("max.poll.records", "1"))) {
            consumer.assign(List.of(place));
            found.put("partitions", consumer.partitionsFor(topic).size());
            found.put("bounds", List.of(consumer.beginningOffsets(List.of(place)).get(place), consumer.endOffsets(List.of(place)).get(place)));
            found.put("at a time", consumer.offsetsForTimes(Map.of(place, START + 3)).get(place).offset());
            found.put("after all", String.valueOf(consumer.offsetsForTimes(Map.of(place, START + 99)).get(place)));
            consumer.seek(place, 7);
            found.put("after a seek", next(consumer).offset());
            consumer.pause(List.of(place));
            found.put("paused", consumer.poll(Duration.ofMillis(300)).count());
            consumer.resume(List.of(place));
            found.put("resumed", next(consumer).offset());
            consumer.commitSync(Map.of(place, new OffsetAndMetadata(5, "note")));
            OffsetAndMetadata known = consumer.committed(Set.of(place)).get(place);
            found.put("committed", List.of(known.offset(), known.metadata()));
            consumer.seekToEnd(List.of(place));
            found.put("at the end", consumer.position(place));
            consumer.seek(place, 1000);
            found.put("out of range", next(consumer).offset());
        }
        return found;
    }

    private static ConsumerRecord<String, String> next(KafkaConsumer<String, String> consumer) throws Exception {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        Facts.until("a record comes", () -> {
            consumer.poll(POLL).forEach(found::add);
            return !found.isEmpty();
        });
        return found.get(0);
    }

    /** Readers of committed records stop where a transaction is open, and go on when it ends. */
    private Object openTransactions() throws Exception {
        TopicPartition place = new TopicPartition(topic, 1);
        Map<String, Object> found = new LinkedHashMap<>();
        Map<String, Object> committed = Map.of("isolation.level", "read_committed");
        try (KafkaProducer<String, String> writer = producer(Map.of("transactional.id", topic));
                KafkaProducer<String, String> plain = producer(Map.of());
                KafkaConsumer<String, String> consumer = consumer("committed", committed);
                KafkaConsumer<String, String> all = consumer("all", Map.of())) {
            consumer.assign(List.of(place));
            writer.initTransactions();
            writer.beginTransaction();
            writer.send(new ProducerRecord<>(topic, 1, "key", "open")).get();
            plain.send(new ProducerRecord<>(topic, 1, "key", "plain")).get();
            found.put("ends", List.of(consumer.endOffsets(List.of(place)).get(place), all.endOffsets(List.of(place)).get(place)));
            found.put("while open", consumer.poll(Duration.ofMillis(500)).count());
            writer.abortTransaction();
            found.put("after the abort", next(consumer).value());
        }
        return found;
    }

    /** A classic member and one of KIP-848 are in one group: the group changes its protocol online. */
    private Object migration() throws Exception {
        Map<String, Object> old = Map.of("partition.assignment.strategy", ASSIGNORS + "CooperativeStickyAssignor");
        try (KafkaConsumer<String, String> first = consumer("migration", old)) {
            first.subscribe(List.of(topic));
            Facts.until("one has all", () -> polled(first).size() == PARTITIONS);
            try (KafkaConsumer<String, String> second = consumer("migration", Map.of("group.protocol", "consumer"))) {
                second.subscribe(List.of(topic));
                Facts.until("each has a half", () -> polled(first).size() == 2 & polled(second).size() == 2);
                String name = topic + "-migration";
                return admin.describeConsumerGroups(List.of(name)).all().get().get(name).type().toString();
            }
        }
    }
}
