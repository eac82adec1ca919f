package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Utils;

/** Record batches of every magic, through the classes that Kafka's own clients read and write them with. */
final class Batches {
    private static final JsonMapper JSON = new JsonMapper();

    private Batches() {
    }

    /** Reads batches, checksums compared: a JSON list of them, bytes in base64. */
    static byte[] read(byte[] data) throws IOException {
        ArrayNode list = JSON.createArrayNode();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            batch.ensureValid();
            describe(batch, list.addObject());
        }
        return JSON.writeValueAsBytes(list);
    }

    private static void describe(MutableRecordBatch batch, ObjectNode out) {
        out.put("magic", batch.magic());
        out.put("codec", batch.compressionType().id);
        out.put("timestamp_type", batch.timestampType().id);
        out.put("size", batch.sizeInBytes());
        out.put("last_offset", batch.lastOffset());
        out.put("max_timestamp", batch.maxTimestamp());
        if (batch.magic() == RecordBatch.MAGIC_VALUE_V2) {
            out.put("base_offset", batch.baseOffset());
            out.put("partition_leader_epoch", batch.partitionLeaderEpoch());
            out.put("producer_id", batch.producerId());
            out.put("producer_epoch", batch.producerEpoch());
            out.put("base_sequence", batch.baseSequence());
            out.put("last_sequence", batch.lastSequence());
            out.put("is_transactional", batch.isTransactional());
            out.put("is_control", batch.isControlBatch());
            out.put("crc", batch.checksum());
            out.put("delete_horizon", batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : null);
        }
        ArrayNode records = out.putArray("records");
        for (Record record : batch) {
            describe(record, records.addObject(), batch.isControlBatch());
        }
    }

    private static void describe(Record record, ObjectNode out, boolean control) {
        out.put("offset", record.offset());
        out.put("timestamp", record.timestamp());
        out.put("key", Utils.toNullableArray(record.key()));
        out.put("value", Utils.toNullableArray(record.value()));
        ArrayNode headers = out.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        if (control) {
            ControlRecordType type = ControlRecordType.parse(record.key());
            out.put("type", type.name());
            if (type == ControlRecordType.COMMIT || type == ControlRecordType.ABORT) {
                out.put("coordinator_epoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
            }
        }
    }

    /** Writes one batch from a JSON object of the names that {@link #read} gives. */
    static byte[] write(byte[] text) throws IOException {
        JsonNode batch = JSON.readTree(text);
        ByteBufferOutputStream out = new ByteBufferOutputStream(1024);
        try (MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                out,
                (byte) batch.get("magic").intValue(),
                Compression.of(CompressionType.forId(batch.get("codec").intValue())).build(),
                timestampType(batch.get("timestamp_type").intValue()),
                batch.get("base_offset").longValue(),
                batch.get("log_append_time").longValue(),
                batch.get("producer_id").longValue(),
                batch.get("producer_epoch").shortValue(),
                batch.get("base_sequence").intValue(),
                batch.get("is_transactional").booleanValue(),
                batch.get("is_control").booleanValue(),
                batch.get("partition_leader_epoch").intValue(),
                Integer.MAX_VALUE,
                batch.get("delete_horizon").longValue())) {
            for (JsonNode record : batch.get("records")) {
                append(builder, record);
            }
            return Utils.toArray(builder.build().buffer());
        }
    }

    private static TimestampType timestampType(int id) {
        return id == TimestampType.LOG_APPEND_TIME.id ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
    }

    private static void append(MemoryRecordsBuilder builder, JsonNode record) throws IOException {
        long timestamp = record.get("timestamp").longValue();
        byte[] value = bytes(record.get("value"));
        if (builder.isControlBatch()) {
            ControlRecordType type = ControlRecordType.valueOf(record.get("type").textValue());
            if (record.has("coordinator_epoch")) {
                int epoch = record.get("coordinator_epoch").intValue();
                builder.appendEndTxnMarker(timestamp, new EndTransactionMarker(type, epoch));
            } else {
                builder.appendControlRecord(timestamp, type, ByteBuffer.wrap(value));
            }
            return;
        }
        Header[] headers = new Header[record.get("headers").size()];
        for (int index = 0; index < headers.length; index++) {
            JsonNode header = record.get("headers").get(index);
            headers[index] = new RecordHeader(header.get(0).textValue(), bytes(header.get(1)));
        }
        builder.appendWithOffset(record.get("offset").longValue(), timestamp, bytes(record.get("key")), value, headers);
    }

    private static byte[] bytes(JsonNode node) throws IOException {
        return node == null || node.isNull() ? null : node.binaryValue();
    }
}
