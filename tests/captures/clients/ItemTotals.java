import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts orders by item under the streams group protocol, for a few seconds. The count needs a repartition topic and a
 * changelog topic, so the group's topology has something of everything. Arguments: bootstrap servers, group id, a
 * directory for state.
 */
public final class ItemTotals {
    private static final Duration LIFETIME = Duration.ofSeconds(12);

    public static void main(String[] arguments) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("application.id", arguments[1]);
        config.put("group.protocol", "streams");
        config.put("auto.offset.reset", "earliest");
        config.put("commit.interval.ms", "500");
        config.put("state.dir", arguments[2]);
        config.put("default.key.serde", Serdes.StringSerde.class.getName());
        config.put("default.value.serde", Serdes.StringSerde.class.getName());

        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("orders")
            .groupBy((key, value) -> item(value), Grouped.as("by-item"))
            .count(Materialized.as(Stores.inMemoryKeyValueStore("totals")));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), config)) {
            streams.start();
            Thread.sleep(LIFETIME.toMillis());
        }
    }

    private static String item(String order) {
        String[] parts = order.split("\"");
        return parts.length > 5 ? parts[5] : "other";
    }
}
