package registry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Protobuf messages in JSON: an object with the fields, in which an absent field with presence is null. Other values are
 * as in {@link AvroValues}; unsigned numbers are not negative, and enums are the number of their value.
 */
final class ProtobufValues {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final int MAX_DEPTH = 4;

    private ProtobufValues() {}

    static JsonNode read(byte[] files, String name, byte[] data) throws Exception {
        return node(DynamicMessage.parseFrom(message(files, name), data));
    }

    static JsonNode write(byte[] files, String name, long seed) throws Exception {
        Message made = random(message(files, name), new Random(seed), 0);
        return NODES.textNode(Base64.getEncoder().encodeToString(made.toByteArray()));
    }

    private static Descriptor message(byte[] files, String name) throws Exception {
        Map<String, FileDescriptor> known = new HashMap<>();
        for (FileDescriptorProto file : FileDescriptorSet.parseFrom(files).getFileList()) {
            FileDescriptor[] imports = file.getDependencyList().stream().map(known::get).toArray(FileDescriptor[]::new);
            known.put(file.getName(), FileDescriptor.buildFrom(file, imports));
        }
        List<Descriptor> waiting = new ArrayList<>();
        known.values().forEach(each -> waiting.addAll(each.getMessageTypes()));
        while (!waiting.isEmpty()) {
            Descriptor next = waiting.remove(waiting.size() - 1);
            if (next.getFullName().equals(name)) {
                return next;
            }
            waiting.addAll(next.getNestedTypes());
        }
        throw new IllegalArgumentException("there is no message " + name);
    }

    private static JsonNode node(Message message) {
        ObjectNode fields = NODES.objectNode();
        for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
            if (field.isMapField()) {
                fields.set(field.getName(), entries((List<?>) message.getField(field)));
            } else if (field.isRepeated()) {
                ArrayNode list = NODES.arrayNode();
                ((List<?>) message.getField(field)).forEach(each -> list.add(scalar(field, each)));
                fields.set(field.getName(), list);
            } else if (field.hasPresence() && !message.hasField(field)) {
                fields.putNull(field.getName());
            } else {
                fields.set(field.getName(), scalar(field, message.getField(field)));
            }
        }
        ObjectNode object = NODES.objectNode();
        object.set("fields", fields);
        return object;
    }

    /** Returns the pairs of a map without duplicates: the last one of a key wins. */
    private static JsonNode entries(List<?> entries) {
        Map<Object, JsonNode> last = new HashMap<>();
        ArrayNode pairs = NODES.arrayNode();
        for (Object each : entries) {
            Message entry = (Message) each;
            FieldDescriptor key = entry.getDescriptorForType().findFieldByNumber(1);
            FieldDescriptor value = entry.getDescriptorForType().findFieldByNumber(2);
            ArrayNode pair = NODES.arrayNode();
            pair.add(scalar(key, entry.getField(key)));
            pair.add(scalar(value, entry.getField(value)));
            last.put(entry.getField(key), pair);
        }
        last.values().forEach(pairs::add);
        return NODES.objectNode().set("entries", pairs);
    }

    private static JsonNode scalar(FieldDescriptor field, Object value) {
        return switch (field.getType()) {
            case MESSAGE, GROUP -> node((Message) value);
            case BOOL -> NODES.booleanNode((Boolean) value);
            case STRING -> NODES.textNode((String) value);
            case BYTES -> tagged("bytes", Base64.getEncoder().encodeToString(((ByteString) value).toByteArray()));
            case FLOAT, DOUBLE -> tagged("float", Double.toHexString(((Number) value).doubleValue()));
            case UINT32, FIXED32 -> tagged("int", Integer.toUnsignedString((Integer) value));
            case UINT64, FIXED64 -> tagged("int", Long.toUnsignedString((Long) value));
            case ENUM -> tagged("int", Integer.toString(((EnumValueDescriptor) value).getNumber()));
            default -> tagged("int", value.toString());
        };
    }

    private static JsonNode tagged(String name, String value) {
        return NODES.objectNode().put(name, value);
    }

    private static Message random(Descriptor type, Random random, int depth) {
        DynamicMessage.Builder made = DynamicMessage.newBuilder(type);
        for (FieldDescriptor field : type.getFields()) {
            boolean nested = field.getJavaType() == FieldDescriptor.JavaType.MESSAGE;
            boolean isNeeded = field.isRequired() || type.getOptions().getMapEntry();
            if (!isNeeded && (random.nextInt(3) == 0 || nested && depth >= MAX_DEPTH)) {
                continue;
            }
            if (!field.isRepeated()) {
                made.setField(field, value(field, random, depth));
                continue;
            }
            for (int count = random.nextInt(4); count > 0; count--) {
                made.addRepeatedField(field, value(field, random, depth));
            }
        }
        return made.buildPartial();
    }

    private static Object value(FieldDescriptor field, Random random, int depth) {
        boolean isEdge = random.nextInt(3) == 0;
        return switch (field.getJavaType()) {
            case MESSAGE -> random(field.getMessageType(), random, depth + 1);
            case BOOLEAN -> random.nextBoolean();
            case STRING -> isEdge ? "" : "é" + random.nextInt(10);
            case BYTE_STRING -> isEdge ? ByteString.EMPTY : ByteString.copyFrom(new byte[] {0, (byte) random.nextInt()});
            case FLOAT -> isEdge ? 0f : random.nextFloat() * 1e10f;
            case DOUBLE -> isEdge ? -0.0 : random.nextGaussian();
            case INT -> isEdge ? (random.nextBoolean() ? 0 : -1) : random.nextInt();
            case LONG -> isEdge ? (random.nextBoolean() ? 0L : -1L) : random.nextLong();
            case ENUM -> field.getEnumType().getValues().get(random.nextInt(field.getEnumType().getValues().size()));
        };
    }
}
