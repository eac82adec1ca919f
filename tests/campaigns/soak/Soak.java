import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A client of the soak campaign, written with Kafka's own clients: idempotent|transactional SERVERS TOPIC. See
 * protocol.py for its lines.
 */
public final class Soak {
    private static final int PARTITIONS = 3;
    private static final int BURST = 3;
    private static final int OUTSTANDING = 500;
    private static final String PAD = " " + ".".repeat(90);
    private static final StringBuilder LINES = new StringBuilder();
    private static volatile boolean draining;
    private static volatile boolean ending;

    private static void report(String line) {
        synchronized (LINES) {
            LINES.append(line).append('\n');
        }
    }

    private static void print() {
        String lines;
        synchronized (LINES) {
            lines = LINES.toString();
            LINES.setLength(0);
        }
        System.out.print(lines);
        System.out.flush();
    }

    private static Map<String, Object> config(String servers, Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", servers);
        config.put("request.timeout.ms", 5000);
        config.put("retry.backoff.ms", 100);
        return config;
    }

    private static void write(String servers, String topic) throws InterruptedException {
        Map<String, Object> more = Map.of("linger.ms", 5, "delivery.timeout.ms", 90_000, "acks", "all");
        AtomicInteger[] waiting = new AtomicInteger[PARTITIONS];
        int[] next = new int[PARTITIONS];
        for (int partition = 0; partition < PARTITIONS; partition++) {
            waiting[partition] = new AtomicInteger();
        }
        try (var producer = new KafkaProducer<>(config(servers, more), new StringSerializer(), new StringSerializer())) {
            while (!draining) {
                for (int partition = 0; partition < PARTITIONS; partition++) {
                    for (int n = 0; n < BURST && waiting[partition].get() < OUTSTANDING; n++) {
                        send(producer, topic, partition, next[partition]++, waiting[partition]);
                    }
                }
                Thread.sleep(50);
            }
            producer.flush();
        }
        report("D");
    }

    private static void transact(String servers, String topic) throws InterruptedException {
        int[] next = new int[PARTITIONS];
        while (!draining) {
            Map<String, Object> more = Map.of(
                    "linger.ms", 5, "delivery.timeout.ms", 30_000, "max.block.ms", 90_000,
                    "transactional.id", topic, "transaction.timeout.ms", 30_000);
            var strings = new StringSerializer();
            try (var producer = new KafkaProducer<>(config(servers, more), strings, strings)) {
                producer.initTransactions();
                while (!draining) {
                    commitBurst(producer, topic, next);
                    Thread.sleep(50);
                }
            } catch (KafkaException error) {
                report("E writer " + error.toString().replace('\n', ' '));
                Thread.sleep(200);
            }
        }
        report("D");
    }

    /** Commit a transaction, or abort it. Throws if neither is possible. */
    private static void commitBurst(KafkaProducer<String, String> producer, String topic, int[] next) {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        List<String> places = new ArrayList<>();
        String failure = "F";
        try {
            producer.beginTransaction();
            for (int partition = 0; partition < PARTITIONS; partition++) {
                for (int n = 0; n < BURST; n++) {
                    places.add(partition + " " + next[partition]);
                    sent.add(producer.send(
                            new ProducerRecord<>(topic, partition, "k" + partition, next[partition]++ + PAD)));
                }
            }
            try {
                producer.commitTransaction();
            } catch (KafkaException error) {
                producer.abortTransaction();
                failure = "X";
                throw error;
            }
            for (int number = 0; number < sent.size(); number++) {
                report("A " + System.currentTimeMillis() + " " + places.get(number) + " " + sent.get(number).get().offset());
            }
        } catch (KafkaException | InterruptedException | ExecutionException error) {
            for (String place : places) {
                report(failure + " " + place + (failure.equals("X") ? "" : " " + error.toString().replace('\n', ' ')));
            }
            if (failure.equals("F")) {
                throw new KafkaException(error);
            }
        }
    }

    private static void send(
            KafkaProducer<String, String> producer, String topic, int partition, int sequence, AtomicInteger waiting) {
        waiting.incrementAndGet();
        var record = new ProducerRecord<>(topic, partition, "k" + partition, sequence + PAD);
        producer.send(record, (metadata, error) -> {
            waiting.decrementAndGet();
            long now = System.currentTimeMillis();
            report(error == null
                    ? "A " + now + " " + partition + " " + sequence + " " + metadata.offset()
                    : "F " + partition + " " + sequence + " " + error.toString().replace('\n', ' '));
        });
    }

    private static void read(String servers, String topic, boolean transactional) {
        Map<String, Object> more = new HashMap<>(Map.of(
                "group.id", "soak-" + topic, "auto.offset.reset", "earliest", "enable.auto.commit", false,
                "fetch.max.wait.ms", 100, "isolation.level", transactional ? "read_committed" : "read_uncommitted"));
        more.putAll(transactional
                ? Map.of("group.protocol", "consumer")
                : Map.of("session.timeout.ms", 10_000, "heartbeat.interval.ms", 1000));
        try (var consumer =
                new KafkaConsumer<>(config(servers, more), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long committed = System.currentTimeMillis();
            while (!ending) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
                long now = System.currentTimeMillis();
                for (ConsumerRecord<String, String> each : records) {
                    String sequence = each.value().substring(0, each.value().indexOf(' '));
                    report("R " + now + " " + each.partition() + " " + each.offset() + " " + sequence);
                }
                if (now > committed + 1000) {
                    commit(consumer);
                    committed = now;
                }
            }
        }
    }

    private static void commit(KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition each : consumer.assignment()) {
            offsets.put(each, new OffsetAndMetadata(consumer.position(each)));
        }
        try {
            consumer.commitSync(offsets, Duration.ofSeconds(5));
        } catch (KafkaException error) {
            return;
        }
        offsets.forEach((place, offset) -> report("C " + place.partition() + " " + offset.offset()));
    }

    private static Thread started(String name, Step step) {
        Thread thread = new Thread(() -> {
            try {
                step.run();
            } catch (Exception error) {
                report("E " + name + " " + error.toString().replace('\n', ' '));
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private interface Step {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        boolean transactional = arguments[0].equals("transactional");
        String servers = arguments[1];
        String topic = arguments[2];
        Thread writer = started("writer", transactional ? () -> transact(servers, topic) : () -> write(servers, topic));
        Thread reader = started("reader", () -> read(servers, topic, transactional));
        started("printer", () -> {
            while (true) {
                Thread.sleep(20);
                print();
            }
        });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            draining = true;
        }
        if (!draining) {
            System.exit(1); // the campaign is gone
        }
        writer.join(100_000);
        ending = true;
        reader.join(20_000);
        print();
        System.exit(0);
    }
}
