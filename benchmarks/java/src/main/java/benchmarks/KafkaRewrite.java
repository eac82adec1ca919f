package benchmarks;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseBroker;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Gives all brokers of a MetadataResponse another address: decodes it, changes it, and encodes it to new bytes.
 *
 * <p>The parameter {@code input} names a file MESSAGE.VERSION.CONTENT, and the file of that name with {@code .rewritten}
 * has the bytes that must come out; the system property {@code inputs} says in which directory. With {@code caches}
 * "cold", other memory is read before each call.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class KafkaRewrite {
    @Param("")
    public String input;

    @Param({"warm", "cold"})
    public String caches;

    public long seen;

    private final long[] other = new long[8 << 20];
    private byte[] data;
    private short version;

    @Setup
    public void load() throws IOException {
        Path directory = Path.of(System.getProperty("inputs"));
        data = Files.readAllBytes(directory.resolve(input));
        version = Short.parseShort(input.split("\\.")[1]);
        if (!Arrays.equals(rewrite(), Files.readAllBytes(directory.resolve(input + ".rewritten")))) {
            throw new IllegalStateException(input + ": Kafka's classes write other bytes");
        }
    }

    @Setup(Level.Invocation)
    public void sweep() {
        if (caches.equals("cold")) {
            for (int place = 0; place < other.length; place += 8) {
                seen += other[place];
            }
        }
    }

    @Benchmark
    public byte[] rewrite() {
        MetadataResponseData message = new MetadataResponseData();
        message.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), version);
        for (MetadataResponseBroker broker : message.brokers()) {
            broker.setHost("localhost");
            broker.setPort(19092);
        }
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }
}
