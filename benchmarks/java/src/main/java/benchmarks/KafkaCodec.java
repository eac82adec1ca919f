package benchmarks;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Decodes and encodes a message with Kafka's own classes, from bytes and to new bytes, as the Python benchmarks do.
 *
 * <p>The parameter names a file MESSAGE.VERSION.CONTENT; the system property {@code inputs} says in which directory.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class KafkaCodec {
    @Param("")
    public String input;

    private byte[] data;
    private short version;
    private Supplier<ApiMessage> empty;
    private ApiMessage message;

    @Setup
    public void load() throws IOException {
        data = Files.readAllBytes(Path.of(System.getProperty("inputs"), input));
        version = Short.parseShort(input.split("\\.")[1]);
        empty = input.startsWith("Metadata") ? MetadataResponseData::new : HeartbeatResponseData::new;
        message = decode();
        if (!Arrays.equals(encode(), data)) {
            throw new IllegalStateException(input + ": Kafka's classes write other bytes");
        }
    }

    @Benchmark
    public ApiMessage decode() {
        ApiMessage made = empty.get();
        made.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), version);
        return made;
    }

    @Benchmark
    public byte[] encode() {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }
}
