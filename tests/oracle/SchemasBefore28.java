import java.nio.ByteBuffer;
import java.util.Scanner;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;

/**
 * Reads and writes messages by the schemas of Kafka's clients of 2.2 to 2.7, before all messages had generated
 * classes. Reads lines of api key, kind, version and bytes; prints the bytes left over and the bytes written back, or the
 * reason of a refusal.
 */
public class SchemasBefore28 {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNext()) {
            ApiKeys api = ApiKeys.forId(lines.nextInt());
            boolean request = lines.next().equals("request");
            short version = lines.nextShort();
            String hex = lines.next().substring(1);
            try {
                Schema schema = request ? api.requestSchema(version) : api.responseSchema(version);
                ByteBuffer read = ByteBuffer.wrap(bytes(hex));
                Struct struct = schema.read(read);
                ByteBuffer written = ByteBuffer.allocate(struct.sizeOf());
                struct.writeTo(written);
                System.out.println(read.remaining() + " " + hex(written.array()));
            } catch (RuntimeException refusal) {
                System.out.println("refused " + String.valueOf(refusal).replace('\n', ' '));
            }
        }
    }

    private static byte[] bytes(String hex) {
        byte[] data = new byte[hex.length() / 2];
        for (int index = 0; index < data.length; index++) {
            data[index] = (byte) Integer.parseInt(hex.substring(2 * index, 2 * index + 2), 16);
        }
        return data;
    }

    private static String hex(byte[] data) {
        StringBuilder text = new StringBuilder();
        for (byte each : data) {
            text.append(String.format("%02x", each));
        }
        return text.toString();
    }
}
