package oracle;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.TransactionCoordinatorRecordSerde;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.serialization.BytesApiMessageSerde;
import org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType;
import org.apache.kafka.server.share.persister.PersisterStateBatch;

/** The records of internal topics, through the classes that Kafka's own coordinators and controllers read them with. */
final class InternalTopics {
    private static final Map<String, CoordinatorRecordSerde> KEYED = Map.of(
        "__consumer_offsets", new GroupCoordinatorRecordSerde(),
        "__transaction_state", new TransactionCoordinatorRecordSerde(),
        "__share_group_state", new ShareCoordinatorRecordSerde());

    private static final Map<String, BytesApiMessageSerde> FRAMED = Map.of(
        "__cluster_metadata", new Frames() {
            @Override
            public ApiMessage apiMessageFor(short apiKey) {
                return MetadataRecordSerde.INSTANCE.apiMessageFor(apiKey);
            }
        },
        "__remote_log_metadata", new Frames() {
            @Override
            public ApiMessage apiMessageFor(short apiKey) {
                return MetadataRecordType.fromId(apiKey).newMetadataRecord();
            }
        });

    private abstract static class Frames extends BytesApiMessageSerde {
    }

    private static final int BATCH_SIZE = Long.BYTES + Long.BYTES + Byte.BYTES + Short.BYTES;

    private InternalTopics() {
    }

    /** Reads a record and writes it back: int32 size and bytes of key and value, -1 for null; then the class's name. */
    static byte[] rewrite(String topic, byte[] key, byte[] value) {
        if (FRAMED.containsKey(topic)) {
            ApiMessageAndVersion read = FRAMED.get(topic).deserialize(value);
            return join(null, FRAMED.get(topic).serialize(read), read.message());
        }
        CoordinatorRecordSerde serde = KEYED.get(topic);
        CoordinatorRecord read = serde.deserialize(ByteBuffer.wrap(key), value == null ? null : ByteBuffer.wrap(value));
        ApiMessage message = read.value() == null ? read.key() : read.value().message();
        return join(serde.serializeKey(read), serde.serializeValue(read), message);
    }

    private static byte[] join(byte[] key, byte[] value, ApiMessage message) {
        byte[] name = message.getClass().getSimpleName().getBytes(StandardCharsets.UTF_8);
        int size = 8 + (key == null ? 0 : key.length) + (value == null ? 0 : value.length) + name.length;
        ByteBuffer joined = ByteBuffer.allocate(size);
        for (byte[] part : new byte[][] {key, value}) {
            joined.putInt(part == null ? -1 : part.length);
            if (part != null) {
                joined.put(part);
            }
        }
        return joined.put(name).array();
    }

    /** Folds share state batches: each is int64 first and last offset, int8 state, int16 delivery count. */
    static byte[] combine(long startOffset, byte[] present, byte[] update) {
        List<PersisterStateBatch> combined =
            new PersisterStateBatchCombiner(batches(present), batches(update), startOffset).combineStateBatches();
        ByteBuffer written = ByteBuffer.allocate(BATCH_SIZE * combined.size());
        for (PersisterStateBatch batch : combined) {
            written.putLong(batch.firstOffset()).putLong(batch.lastOffset());
            written.put(batch.deliveryState()).putShort(batch.deliveryCount());
        }
        return written.array();
    }

    private static List<PersisterStateBatch> batches(byte[] data) {
        List<PersisterStateBatch> found = new ArrayList<>();
        for (ByteBuffer source = ByteBuffer.wrap(data); source.hasRemaining();) {
            found.add(new PersisterStateBatch(source.getLong(), source.getLong(), source.get(), source.getShort()));
        }
        return found;
    }
}
