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
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Asks Kafka's own assignors. Each line of the input is a group, its parts separated by tabs:
 * assignor, topics with the racks of each partition (t=r1+r2;r2;,u=;), then for each member
 * id|instance|topics|owned|generation|rack (m1||t,u|t:0,t:1|3|r1).
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
            members.put(facts[0], subscription(facts, parts[0].equals("sticky")));
        }
        Map<String, String> subscriptions = members.entrySet().stream().collect(Collectors.toMap(
            Map.Entry::getKey, member -> hex(ConsumerProtocol.serializeSubscription(member.getValue()))));
        members.values().stream().filter(each -> each.userData() != null).forEach(each -> each.userData().rewind());
        Map<String, ConsumerPartitionAssignor.Assignment> assigned = assignor(parts[0])
            .assign(cluster(parts[1]), new ConsumerPartitionAssignor.GroupSubscription(members))
            .groupAssignment();
        return members.entrySet().stream().map(member -> String.join("|",
            member.getKey(),
            assigned.get(member.getKey()).partitions().stream()
                .map(each -> each.topic() + ":" + each.partition()).collect(Collectors.joining(",")),
            subscriptions.get(member.getKey()),
            hex(ConsumerProtocol.serializeAssignment(assigned.get(member.getKey())))
        )).collect(Collectors.joining("\t"));
    }

    /** The subscription of a member. One that is eager says in its user data what it had, as Kafka's assignor writes it. */
    private static ConsumerPartitionAssignor.Subscription subscription(String[] facts, boolean eager) {
        int generation = Integer.parseInt(facts[4]);
        List<TopicPartition> owned = names(facts[3]).stream().map(each -> {
            int colon = each.lastIndexOf(':');
            return new TopicPartition(each.substring(0, colon), Integer.parseInt(each.substring(colon + 1)));
        }).collect(Collectors.toCollection(ArrayList::new));
        ByteBuffer userData = null;
        if (eager && generation >= 0) {
            StickyAssignor before = new StickyAssignor();
            before.onAssignment(
                new ConsumerPartitionAssignor.Assignment(owned),
                new ConsumerGroupMetadata("g", generation, facts[0], Optional.empty()));
            userData = before.subscriptionUserData(Set.copyOf(names(facts[2])));
        }
        ConsumerPartitionAssignor.Subscription made = new ConsumerPartitionAssignor.Subscription(
            names(facts[2]), userData, eager ? List.of() : owned, generation,
            facts[5].isEmpty() ? Optional.empty() : Optional.of(facts[5]));
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
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    /** A cluster with one node for each rack; a partition without racks is on a node without one. */
    private static Cluster cluster(String topics) {
        Map<String, Node> nodes = new LinkedHashMap<>();
        nodes.put("", new Node(0, "localhost", 9092));
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String topic : names(topics)) {
            String[] facts = topic.split("=", -1);
            String[] places = facts[1].split(";", -1);
            for (int number = 0; number < places.length; number++) {
                Node[] replicas = Arrays.stream(places[number].split("\\+", -1))
                    .map(rack -> nodes.computeIfAbsent(rack, each -> new Node(nodes.size(), "localhost", 9092, each)))
                    .toArray(Node[]::new);
                partitions.add(new PartitionInfo(facts[0], number, replicas[0], replicas, replicas));
            }
        }
        return new Cluster("c", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
