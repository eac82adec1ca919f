package oracle;

import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.processor.internals.TopicPartitionMetadata;

/**
 * Answers questions about Kafka's message classes on standard input and output until the input ends.
 *
 * <p>A frame is an int32 length and that many bytes. A question is an operation byte, an int32 count and the items; its
 * answer holds one result for each item, in order. A byte string is an int32 length and the bytes.
 * <ul>
 * <li>operation 0, no items: one byte string, a JSON list of the messages; an item's index names it below.
 * <li>operation 1, encode: int16 message, int16 version to read the JSON at, int16 version to write at, JSON as a byte
 *     string; the result is one part, the bytes.
 * <li>operation 2, decode: int16 message, int16 version, byte string; the result is either one failed part or the int32
 *     number of bytes consumed and two parts, the JSON and the bytes written back.
 * <li>operation 3, record of an internal topic: topic as a byte string, key and value as nullable ones (size -1); the
 *     result is one part, see {@link InternalTopics#rewrite}.
 * <li>operation 4, fold of share state: int64 start offset, batches so far and new ones as byte strings; the result is
 *     one part, see {@link InternalTopics#combine}.
 * <li>operation 5, read batches: byte string; the result is one part, see {@link Batches#read}.
 * <li>operation 6, write a batch: JSON as a byte string; the result is one part, the bytes; see {@link Batches#write}.
 * <li>operation 7, error response: int16 api key, int16 version, int32 throttle time, int16 error code, the request as a
 *     byte string; the result is one part, see {@link ErrorResponses#answer}.
 * <li>operation 8, hash of a key: byte string; the result is one part, an int32.
 * <li>operation 9, metadata of an offset of Kafka Streams: byte string; the result is one part, the text written back.
 * </ul>
 * A part is a byte 1 and a byte string, or a byte 0 and two byte strings: an exception's class and its text.
 */
public final class Oracle {
    private static final byte LIST = 0;
    private static final byte ENCODE = 1;
    private static final byte DECODE = 2;
    private static final byte RECORD = 3;
    private static final byte FOLD = 4;
    private static final byte READ_BATCHES = 5;
    private static final byte WRITE_BATCH = 6;
    private static final byte ERROR_RESPONSE = 7;
    private static final byte HASH = 8;
    private static final byte STREAMS_METADATA = 9;

    private final JsonMapper json = JsonMapper.builder()
        .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
        .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
        .build();
    private final List<MessageType> types;

    private Oracle(List<MessageType> types) {
        this.types = types;
    }

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
        // A library that prints must not be able to write into an answer.
        System.setOut(System.err);
        new Oracle(Catalog.load(System.getProperty("java.class.path"))).serve(in, out);
    }

    private void serve(DataInputStream in, DataOutputStream out) throws IOException {
        while (true) {
            byte[] question;
            try {
                question = in.readNBytes(in.readInt());
            } catch (EOFException ended) {
                return;
            }
            ByteArrayOutputStream answer = new ByteArrayOutputStream();
            answer(ByteBuffer.wrap(question), new DataOutputStream(answer));
            out.writeInt(answer.size());
            answer.writeTo(out);
            out.flush();
        }
    }

    private void answer(ByteBuffer question, DataOutputStream out) throws IOException {
        byte operation = question.get();
        int count = question.getInt();
        if (operation == LIST) {
            writeBytes(out, json.writeValueAsBytes(list()));
        }
        for (int item = 0; item < count; item++) {
            if (operation == ENCODE) {
                encode(question, out);
            } else if (operation == DECODE) {
                decode(question, out);
            } else if (operation == RECORD) {
                String topic = new String(readBytes(question), StandardCharsets.UTF_8);
                byte[] key = readNullableBytes(question);
                byte[] value = readNullableBytes(question);
                writePart(out, () -> InternalTopics.rewrite(topic, key, value));
            } else if (operation == FOLD) {
                long startOffset = question.getLong();
                byte[] present = readBytes(question);
                byte[] update = readBytes(question);
                writePart(out, () -> InternalTopics.combine(startOffset, present, update));
            } else if (operation == READ_BATCHES) {
                byte[] data = readBytes(question);
                writePart(out, () -> Batches.read(data));
            } else if (operation == WRITE_BATCH) {
                byte[] batch = readBytes(question);
                writePart(out, () -> Batches.write(batch));
            } else if (operation == ERROR_RESPONSE) {
                short apiKey = question.getShort();
                short version = question.getShort();
                int throttleMs = question.getInt();
                short code = question.getShort();
                byte[] request = readBytes(question);
                writePart(out, () -> ErrorResponses.answer(apiKey, version, throttleMs, code, request));
            } else if (operation == HASH) {
                byte[] key = readBytes(question);
                writePart(out, () -> ByteBuffer.allocate(4).putInt(Utils.murmur2(key)).array());
            } else if (operation == STREAMS_METADATA) {
                String text = new String(readBytes(question), StandardCharsets.UTF_8);
                writePart(out, () -> TopicPartitionMetadata.decode(text).encode().getBytes(StandardCharsets.UTF_8));
            } else {
                throw new IOException("no such operation: " + operation);
            }
        }
    }

    private ArrayNode list() {
        ArrayNode list = json.createArrayNode();
        for (MessageType type : types) {
            ObjectNode entry = list.addObject();
            entry.put("name", type.name());
            entry.put("kind", type.kind());
            entry.put("artifact", type.artifact());
            entry.put("release", type.release());
            entry.put("lowest", type.lowest());
            entry.put("highest", type.highest());
            entry.put("has_json", type.hasJson());
            entry.set("definition", type.definition());
        }
        return list;
    }

    private void encode(ByteBuffer question, DataOutputStream out) throws IOException {
        MessageType type = types.get(question.getShort());
        short jsonVersion = question.getShort();
        short version = question.getShort();
        byte[] text = readBytes(question);
        writePart(out, () -> {
            type.requireVersion(jsonVersion);
            type.requireVersion(version);
            return write(type.fromJson(json.readTree(text), jsonVersion), version);
        });
    }

    private void decode(ByteBuffer question, DataOutputStream out) throws IOException {
        MessageType type = types.get(question.getShort());
        short version = question.getShort();
        byte[] data = readBytes(question);
        ByteBuffer buffer = ByteBuffer.wrap(data);
        Message message;
        try {
            type.requireVersion(version);
            message = type.create();
            message.read(new ByteBufferAccessor(buffer), version);
        } catch (Throwable rejection) {
            writeRejection(out, rejection);
            return;
        }
        out.writeByte(1);
        out.writeInt(buffer.position());
        writePart(out, () -> json.writeValueAsBytes(type.toJson(message, version)));
        writePart(out, () -> write(message, version));
    }

    private static byte[] write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(written), cache, version);
        if (written.hasRemaining()) {
            throw new IllegalStateException(written.remaining() + " bytes fewer than announced");
        }
        return written.array();
    }

    private interface Attempt {
        byte[] run() throws Throwable;
    }

    private static void writePart(DataOutputStream out, Attempt attempt) throws IOException {
        byte[] data;
        try {
            data = attempt.run();
        } catch (Throwable rejection) {
            writeRejection(out, rejection);
            return;
        }
        out.writeByte(1);
        writeBytes(out, data);
    }

    /** Any failure is a verdict on the message, except a heap that ran out, and a method that a release lacks. */
    private static void writeRejection(DataOutputStream out, Throwable rejection) throws IOException {
        if (rejection instanceof OutOfMemoryError || rejection instanceof LinkageError) {
            throw (Error) rejection;
        }
        out.writeByte(0);
        writeBytes(out, rejection.getClass().getName().getBytes(StandardCharsets.UTF_8));
        writeBytes(out, String.valueOf(rejection.getMessage()).getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] readBytes(ByteBuffer source) {
        return readBytes(source, source.getInt());
    }

    private static byte[] readNullableBytes(ByteBuffer source) {
        int size = source.getInt();
        return size < 0 ? null : readBytes(source, size);
    }

    private static byte[] readBytes(ByteBuffer source, int size) {
        byte[] data = new byte[size];
        source.get(data);
        return data;
    }

    private static void writeBytes(DataOutputStream out, byte[] data) throws IOException {
        out.writeInt(data.length);
        out.write(data);
    }
}
