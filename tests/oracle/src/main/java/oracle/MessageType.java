package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.Message;

/** One message of Kafka's: its class and, where Kafka ships one, its JSON converter, behind cached handles. */
final class MessageType {
    private final String name;
    private final String kind;
    private final String artifact;
    private final String release;
    private final JsonNode definition;
    private final MethodHandle create;
    private final MethodHandle fromJson;
    private final MethodHandle toJson;
    private final short lowest;
    private final short highest;

    MessageType(
        String name, String kind, String artifact, String release, JsonNode definition, Class<? extends Message> type)
        throws ReflectiveOperationException {
        this.name = name;
        this.kind = kind;
        this.artifact = artifact;
        this.release = release;
        this.definition = definition;
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        this.create = lookup.findConstructor(type, MethodType.methodType(void.class))
            .asType(MethodType.methodType(Message.class));
        Class<?> converter = converterOf(type);
        this.fromJson = converter == null ? null : lookup
            .findStatic(converter, "read", MethodType.methodType(type, JsonNode.class, short.class))
            .asType(MethodType.methodType(Message.class, JsonNode.class, short.class));
        this.toJson = converter == null ? null : lookup
            .findStatic(converter, "write", MethodType.methodType(JsonNode.class, type, short.class, boolean.class))
            .asType(MethodType.methodType(JsonNode.class, Message.class, short.class, boolean.class));
        Message example = type.getConstructor().newInstance();
        this.lowest = example.lowestSupportedVersion();
        this.highest = example.highestSupportedVersion();
    }

    /** The converter class, or null: Kafka Streams ships its message without one. */
    private static Class<?> converterOf(Class<?> type) {
        try {
            return Class.forName(type.getName() + "JsonConverter");
        } catch (ClassNotFoundException absent) {
            return null;
        }
    }

    String name() {
        return name;
    }

    String kind() {
        return kind;
    }

    String artifact() {
        return artifact;
    }

    String release() {
        return release;
    }

    JsonNode definition() {
        return definition;
    }

    short lowest() {
        return lowest;
    }

    short highest() {
        return highest;
    }

    boolean hasJson() {
        return toJson != null;
    }

    /** Kafka's generated classes take any version at the top level; the check is in their callers, hence here too. */
    void requireVersion(short version) {
        if (version < lowest || version > highest) {
            throw new UnsupportedVersionException(name + " has versions " + lowest + " to " + highest);
        }
    }

    Message create() throws Throwable {
        return (Message) create.invokeExact();
    }

    Message fromJson(JsonNode json, short version) throws Throwable {
        return (Message) require(fromJson).invokeExact(json, version);
    }

    JsonNode toJson(Message message, short version) throws Throwable {
        return (JsonNode) require(toJson).invokeExact(message, version, true);
    }

    private MethodHandle require(MethodHandle handle) {
        if (handle == null) {
            throw new UnsupportedOperationException("Kafka ships no JSON converter for " + name);
        }
        return handle;
    }
}
