package registry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.RandomData;

/**
 * Avro values in JSON: a value other than a text, a flag, a list, a map or a record is an object with one entry, which
 * is called after its type: {@code int}, {@code float}, {@code bytes}, {@code decimal}, {@code date} and so on. The
 * value of a union with several types other than null is the entry {@code branch}, with the number of the branch, which does not count null.
 */
final class AvroValues {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private AvroValues() {}

    static JsonNode write(String text, long seed) throws Exception {
        Schema schema = new Schema.Parser().parse(text);
        Object value = new RandomData(schema, 1, seed).iterator().next();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        new GenericDatumWriter<Object>(schema).write(value, encoder);
        encoder.flush();
        return NODES.textNode(Base64.getEncoder().encodeToString(bytes.toByteArray()));
    }

    static JsonNode read(String writer, String reader, byte[] data) throws Exception {
        Schema written = new Schema.Parser().parse(writer);
        Schema read = new Schema.Parser().parse(reader);
        GenericData model = model();
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(data, null);
        Object value = new GenericDatumReader<Object>(written, read, model).read(null, decoder);
        if (!decoder.isEnd()) {
            throw new IllegalArgumentException("bytes follow the value");
        }
        return node(value, read, model);
    }

    private static GenericData model() {
        GenericData model = new GenericData();
        model.addLogicalTypeConversion(new Conversions.DecimalConversion());
        model.addLogicalTypeConversion(new TimeConversions.DateConversion());
        model.addLogicalTypeConversion(new TimeConversions.TimeMillisConversion());
        model.addLogicalTypeConversion(new TimeConversions.TimeMicrosConversion());
        model.addLogicalTypeConversion(new TimeConversions.TimestampMillisConversion());
        model.addLogicalTypeConversion(new TimeConversions.TimestampMicrosConversion());
        model.addLogicalTypeConversion(new TimeConversions.LocalTimestampMillisConversion());
        model.addLogicalTypeConversion(new TimeConversions.LocalTimestampMicrosConversion());
        return model;
    }

    private static JsonNode node(Object value, Schema schema, GenericData model) {
        if (value == null) {
            return NODES.nullNode();
        }
        if (schema.getType() == Schema.Type.UNION) {
            int index = model.resolveUnion(schema, value);
            JsonNode found = node(value, schema.getTypes().get(index), model);
            if (withoutNull(schema.getTypes()) < 2) {
                return found;
            }
            long number = withoutNull(schema.getTypes().subList(0, index));
            ObjectNode branch = NODES.objectNode().put("number", number);
            branch.set("value", found);
            return tagged("branch", branch);
        }
        if (value instanceof IndexedRecord record) {
            ObjectNode fields = NODES.objectNode();
            schema.getFields().forEach(each -> fields.set(each.name(), node(record.get(each.pos()), each.schema(), model)));
            return tagged("fields", fields);
        }
        if (value instanceof Map<?, ?> map) {
            ObjectNode entries = NODES.objectNode();
            map.forEach((key, each) -> entries.set(key.toString(), node(each, schema.getValueType(), model)));
            return tagged("fields", entries);
        }
        if (value instanceof Collection<?> items) {
            ArrayNode list = NODES.arrayNode();
            items.forEach(each -> list.add(node(each, schema.getElementType(), model)));
            return list;
        }
        return scalar(value);
    }

    private static long withoutNull(List<Schema> branches) {
        return branches.stream().filter(each -> each.getType() != Schema.Type.NULL).count();
    }

    private static JsonNode scalar(Object value) {
        if (value instanceof Boolean flag) {
            return NODES.booleanNode(flag);
        } else if (value instanceof Integer || value instanceof Long) {
            return tagged("int", NODES.textNode(value.toString()));
        } else if (value instanceof Float || value instanceof Double) {
            return tagged("float", NODES.textNode(Double.toHexString(((Number) value).doubleValue())));
        } else if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return tagged("bytes", NODES.textNode(Base64.getEncoder().encodeToString(bytes)));
        } else if (value instanceof GenericFixed fixed) {
            return tagged("bytes", NODES.textNode(Base64.getEncoder().encodeToString(fixed.bytes())));
        } else if (value instanceof BigDecimal decimal) {
            return tagged("decimal", NODES.textNode(decimal.unscaledValue() + "/" + decimal.scale()));
        } else if (value instanceof LocalDate date) {
            return tagged("date", NODES.textNode(Long.toString(date.toEpochDay())));
        } else if (value instanceof LocalTime time) {
            return tagged("time", NODES.textNode(Long.toString(time.toNanoOfDay() / 1000)));
        } else if (value instanceof Instant instant) {
            return tagged("timestamp", NODES.textNode(microseconds(instant)));
        } else if (value instanceof LocalDateTime moment) {
            Instant instant = moment.toInstant(ZoneOffset.UTC);
            return tagged("local", NODES.textNode(microseconds(instant)));
        }
        return NODES.textNode(value.toString());
    }

    private static String microseconds(Instant instant) {
        return Long.toString(Math.addExact(
                Math.multiplyExact(instant.getEpochSecond(), 1_000_000L), instant.getNano() / 1000));
    }

    private static JsonNode tagged(String name, JsonNode value) {
        ObjectNode object = NODES.objectNode();
        object.set(name, value);
        return object;
    }
}
