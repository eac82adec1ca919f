package benchmarks;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;

/** Decodes and encodes messages with Kafka's own classes, for benchmarks/languages.py, which describes what it is asked. */
public final class Peer {
    private static final Map<String, Supplier<Message>> MAKERS = Map.of(
            "ApiVersionsResponse", ApiVersionsResponseData::new,
            "ConsumerGroupHeartbeatResponse", ConsumerGroupHeartbeatResponseData::new,
            "FetchResponse", FetchResponseData::new,
            "HeartbeatResponse", HeartbeatResponseData::new,
            "JoinGroupResponse", JoinGroupResponseData::new,
            "MetadataResponse", MetadataResponseData::new,
            "OffsetCommitValue", OffsetCommitValue::new,
            "OffsetFetchResponse", OffsetFetchResponseData::new,
            "ProduceRequest", ProduceRequestData::new);

    /** What is made is stored here, so that the compiler cannot leave it out. */
    public static Object made;

    public static long seen;

    private final Supplier<Message> maker;
    private final short version;
    private final byte[] data;
    private final Message decoded;

    private Peer(Path path) throws IOException {
        String name = path.getFileName().toString();
        maker = MAKERS.get(messageOf(path));
        version = Short.parseShort(name.substring(name.indexOf('.') + 1));
        data = Files.readAllBytes(path);
        decoded = decode();
        if (!Arrays.equals(encode(), data)) {
            throw new IllegalStateException(name + ": Kafka's classes write other bytes");
        }
    }

    private static String messageOf(Path path) {
        return path.getFileName().toString().split("\\.")[0];
    }

    private Message decode() {
        Message message = maker.get();
        message.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), version);
        return message;
    }

    private byte[] encode() {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(decoded.size(cache, version));
        decoded.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    private long timedDecoding(int calls) {
        long start = System.nanoTime();
        for (int call = 0; call < calls; call++) {
            made = decode();
        }
        return System.nanoTime() - start;
    }

    private long timedEncoding(int calls) {
        long start = System.nanoTime();
        for (int call = 0; call < calls; call++) {
            made = encode();
        }
        return System.nanoTime() - start;
    }

    private static void sweep(long[] other) {
        for (int place = 0; place < other.length; place += 8) {
            seen += other[place];
        }
    }

    public static void main(String[] arguments) throws IOException {
        Map<String, Peer> peers = new TreeMap<>();
        try (Stream<Path> files = Files.list(Path.of(arguments[0]))) {
            List<Path> known =
                    files.filter(path -> MAKERS.containsKey(messageOf(path))).collect(Collectors.toList());
            for (Path path : known) {
                peers.put(path.getFileName().toString(), new Peer(path));
            }
        }
        System.out.println(String.join(" ", peers.keySet()));
        long[] other = new long[8 << 20];
        Arrays.fill(other, 1);
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            String[] words = line.split(" ");
            Peer peer = peers.get(words[2]);
            int calls = Integer.parseInt(words[3]);
            if (words[0].equals("cold")) {
                sweep(other);
            }
            System.out.println(words[1].equals("decode") ? peer.timedDecoding(calls) : peer.timedEncoding(calls));
        }
    }
}
