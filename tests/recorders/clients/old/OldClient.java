import java.util.Collections;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A session of an old Java client: {@code OldClient HOST:PORT CLIENT_ID} produces, reads in a group, and commits. */
public final class OldClient {
    private static final int SECONDS = 20;

    public static void main(String[] arguments) throws Exception {
        String name = arguments[1];
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("client.id", name);
        for (String side : new String[] {"key", "value"}) {
            config.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            config.put(side + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
            for (int number = 0; number < 3; number++) {
                producer.send(new ProducerRecord<>(name, "order " + number)).get(SECONDS, TimeUnit.SECONDS);
            }
        }
        config.put("group.id", name);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(Collections.singletonList(name));
            for (int found = 0; found < 3; found += consumer.poll(500).count()) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("no records arrived");
                }
            }
            consumer.commitSync();
        }
        System.exit(0);
    }
}
