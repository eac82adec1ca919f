package registry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Runs one command per line of JSON, and writes one line with {@code value} or {@code refused} and the reason.
 *
 * <ul>
 *   <li>{@code avro-write}: {@code writer}, {@code seed}: a random value of the schema, as bytes in base64
 *   <li>{@code avro-read}: {@code writer}, {@code reader}, {@code data}: the value in bytes, see {@link AvroValues}
 *   <li>{@code protobuf-write}: {@code files}, {@code message}, {@code seed}: a random message, as bytes in base64
 *   <li>{@code protobuf-read}: {@code files}, {@code message}, {@code data}: its fields, see {@link ProtobufValues}
 *   <li>{@code json-read}: {@code data}: the value, see {@link JsonValues}
 * </ul>
 *
 * Schemas are text, {@code files} is a FileDescriptorSet in base64.
 */
public final class RegistryOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private RegistryOracle() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        // A library that prints must not be able to write into an answer.
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("value", answer(JSON.readTree(line)));
            } catch (Exception | StackOverflowError | OutOfMemoryError refusal) {
                answer.put("refused", refusal.toString());
            }
            out.println(JSON.writeValueAsString(answer));
            out.flush();
        }
    }

    private static JsonNode answer(JsonNode command) throws Exception {
        return switch (command.get("op").asText()) {
            case "avro-write" -> AvroValues.write(command.get("writer").asText(), command.get("seed").asLong());
            case "avro-read" -> AvroValues.read(
                    command.get("writer").asText(), command.get("reader").asText(), command.get("data").binaryValue());
            case "protobuf-write" -> ProtobufValues.write(
                    command.get("files").binaryValue(), command.get("message").asText(), command.get("seed").asLong());
            case "protobuf-read" -> ProtobufValues.read(
                    command.get("files").binaryValue(), command.get("message").asText(), command.get("data").binaryValue());
            case "json-read" -> JsonValues.read(command.get("data").binaryValue());
            default -> throw new IllegalArgumentException("no such command");
        };
    }
}
