import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Asks Kafka's own assignors. Each line of the input is a group, its parts separated by tabs:
 * assignor, topics (t=3,u=2), then for each member id|instance|topics|owned|generation (m1||t,u|t:0,t:1|3).
 * Each line of the answer has, for each member, id|partitions|bytes of the subscription|bytes of the assignment.
 */
public class Assignors {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(answer(line.split("\t", -1)));
        }
    }

    private static String answer(String[] parts) {
        Map<String, ConsumerPartitionAssignor.Subscription> members = new LinkedHashMap<>();
        for (String member : Arrays.copyOfRange(parts, 2, parts.length)) {
            String[] facts = member.split("\\|", -1);
            members.put(facts[0], subscription(facts));
        }
        Map<String, ConsumerPartitionAssignor.Assignment> assigned = assignor(parts[0])
            .assign(cluster(parts[1]), new ConsumerPartitionAssignor.GroupSubscription(members))
            .groupAssignment();
        return members.entrySet().stream().map(member -> String.join("|",
            member.getKey(),
            assigned.get(member.getKey()).partitions().stream()
                .map(each -> each.topic() + ":" + each.partition()).collect(Collectors.joining(",")),
            hex(ConsumerProtocol.serializeSubscription(member.getValue())),
            hex(ConsumerProtocol.serializeAssignment(assigned.get(member.getKey())))
        )).collect(Collectors.joining("\t"));
    }

    private static ConsumerPartitionAssignor.Subscription subscription(String[] facts) {
        int generation = Integer.parseInt(facts[4]);
        List<TopicPartition> owned = names(facts[3]).stream().map(each -> {
            int colon = each.lastIndexOf(':');
            return new TopicPartition(each.substring(0, colon), Integer.parseInt(each.substring(colon + 1)));
        }).collect(Collectors.toCollection(ArrayList::new));
        ConsumerPartitionAssignor.Subscription made = new ConsumerPartitionAssignor.Subscription(
            names(facts[2]), null, owned, generation, Optional.empty());
        made.setGroupInstanceId(facts[1].isEmpty() ? Optional.empty() : Optional.of(facts[1]));
        return made;
    }

    private static List<String> names(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(","));
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    private static Cluster cluster(String topics) {
        Node node = new Node(0, "localhost", 9092);
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String topic : names(topics)) {
            String[] facts = topic.split("=");
            for (int number = 0; number < Integer.parseInt(facts[1]); number++) {
                partitions.add(new PartitionInfo(facts[0], number, node, new Node[] {node}, new Node[] {node}));
            }
        }
        return new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
