import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.StringJoiner;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of share groups that do what each line of the input says, and answer each with a line. A line begins with the
 * name of a member.
 *
 * <p>Commands: {@code open SERVERS GROUP TOPIC NAME=VALUE...} makes a member with these settings; {@code poll MS} answers
 * value:deliveries for each record; {@code accept}, {@code release}, {@code reject} and {@code renew} with values of
 * records; {@code commit} answers the errors by partition; {@code close}.
 */
public final class ShareMembers {
    private final Map<String, ConsumerRecord<String, String>> records = new HashMap<>();
    private final KafkaShareConsumer<String, String> consumer;

    private ShareMembers(String[] words) {
        Properties config = new Properties();
        config.put("bootstrap.servers", words[2]);
        config.put("group.id", words[3]);
        for (String setting : Arrays.copyOfRange(words, 5, words.length)) {
            String[] parts = setting.split("=", 2);
            config.put(parts[0], parts[1]);
        }
        consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(words[4]));
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, ShareMembers> members = new HashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String answer = "opened";
            try {
                if (words[1].equals("open")) {
                    members.put(words[0], new ShareMembers(words));
                } else {
                    answer = members.get(words[0]).run(words);
                }
            } catch (RuntimeException error) {
                answer = "error " + error;
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
    }

    private String run(String[] words) {
        switch (words[1]) {
            case "poll":
                return poll(Integer.parseInt(words[2]));
            case "commit":
                return consumer.commitSync(Duration.ofSeconds(60)).toString();
            case "close":
                consumer.close(Duration.ofSeconds(60));
                return "closed";
            default:
                AcknowledgeType type = AcknowledgeType.valueOf(words[1].toUpperCase());
                for (String value : Arrays.copyOfRange(words, 2, words.length)) {
                    consumer.acknowledge(records.get(value), type);
                }
                return "done";
        }
    }

    private String poll(int milliseconds) {
        StringJoiner answer = new StringJoiner(" ");
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(milliseconds))) {
            records.put(record.value(), record);
            answer.add(record.value() + ":" + record.deliveryCount().get());
        }
        return answer.toString();
    }
}
