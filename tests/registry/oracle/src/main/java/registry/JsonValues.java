package registry;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** JSON values: numbers are objects with the entry {@code int} or {@code float}, as in {@link AvroValues}. */
final class JsonValues {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final ObjectMapper JSON = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private JsonValues() {}

    static JsonNode read(byte[] data) throws Exception {
        JsonNode found = JSON.readTree(data);
        if (found.isMissingNode()) {
            throw new IllegalArgumentException("there is no value");
        }
        return node(found);
    }

    private static JsonNode node(JsonNode value) {
        if (value.isIntegralNumber()) {
            return NODES.objectNode().put("int", value.bigIntegerValue().toString());
        } else if (value.isNumber()) {
            return NODES.objectNode().put("float", Double.toHexString(value.doubleValue()));
        } else if (value.isArray()) {
            ArrayNode list = NODES.arrayNode();
            value.forEach(each -> list.add(node(each)));
            return list;
        } else if (value.isObject()) {
            ObjectNode fields = NODES.objectNode();
            value.properties().forEach(each -> fields.set(each.getKey(), node(each.getValue())));
            ObjectNode object = NODES.objectNode();
            object.set("fields", fields);
            return object;
        }
        return value;
    }
}
