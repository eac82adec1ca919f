import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts orders by item, for a few seconds, under the streams group protocol or the classic one. The count needs a repartition topic and a
 * changelog topic, so the group's topology has something of everything. Arguments: bootstrap servers, group id, a
 * directory for state; optionally how many instances run, for how many seconds, the topic that is read, and the protocol.
 */
public final class ItemTotals {
    public static void main(String[] arguments) throws Exception {
        int instances = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 1;
        int seconds = arguments.length > 4 ? Integer.parseInt(arguments[4]) : 12;
        String topic = arguments.length > 5 ? arguments[5] : "orders";
        List<KafkaStreams> running = new ArrayList<>();
        for (int number = 0; number < instances; number++) {
            KafkaStreams streams = new KafkaStreams(topology(topic), config(arguments, number));
            running.add(streams);
            streams.start();
        }
        // The members leave their group, whoever ends the application.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> running.forEach(KafkaStreams::close)));
        Thread.sleep(seconds * 1000L);
        System.exit(0);
    }

    private static Topology topology(String topic) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(topic)
            .groupBy((key, value) -> item(value), Grouped.as("by-item"))
            .count(Materialized.as(Stores.inMemoryKeyValueStore("totals")));
        return builder.build();
    }

    private static Properties config(String[] arguments, int number) {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("application.id", arguments[1]);
        config.put("group.protocol", arguments.length > 6 ? arguments[6] : "streams");
        if (config.get("group.protocol").equals("classic")) {
            // Its members do not leave the group when they end.
            config.put("session.timeout.ms", "6000");
        }
        config.put("auto.offset.reset", "earliest");
        config.put("commit.interval.ms", "500");
        config.put("state.dir", arguments[2] + "/" + number);
        config.put("default.key.serde", Serdes.StringSerde.class.getName());
        config.put("default.value.serde", Serdes.StringSerde.class.getName());
        return config;
    }

    private static String item(String order) {
        String[] parts = order.split("\"");
        return parts.length > 5 ? parts[5] : "other";
    }
}
