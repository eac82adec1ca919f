import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads lines of class, version and bytes; prints the bytes that Kafka's class writes of what it has read. */
public class OlderRelease {
    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNext()) {
            Class<?> type = Class.forName("org.apache.kafka.common.message." + lines.next() + "Data");
            Message message = (Message) type.getDeclaredConstructor().newInstance();
            short version = lines.nextShort();
            ByteBuffer read = ByteBuffer.wrap(HexFormat.of().parseHex(lines.next().substring(1)));
            message.read(new ByteBufferAccessor(read), version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(written), cache, version);
            System.out.println(read.remaining() + " " + HexFormat.of().formatHex(written.array()));
        }
    }
}
