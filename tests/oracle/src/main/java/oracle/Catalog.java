package oracle;

import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.protocol.Message;

/**
 * Finds the messages that the jars on the class path carry.
 *
 * <p>A jar says which messages it has by the definitions it ships; the class of a definition is the one of that name in
 * the same jar. So there is no list of packages to maintain. Definitions without a class (retired ones) are left out.
 */
final class Catalog {
    private static final JsonMapper DEFINITIONS =
        JsonMapper.builder().enable(JsonReadFeature.ALLOW_JAVA_COMMENTS).build();

    private Catalog() {
    }

    /** Every message of every jar of {@code classPath}, ordered by name. */
    static List<MessageType> load(String classPath) throws IOException, ReflectiveOperationException {
        List<MessageType> found = new ArrayList<>();
        for (String entry : classPath.split(File.pathSeparator)) {
            if (entry.endsWith(".jar")) {
                scan(Path.of(entry), found);
            }
        }
        found.sort(Comparator.comparing(MessageType::name));
        return found;
    }

    private static void scan(Path jarPath, List<MessageType> found) throws IOException, ReflectiveOperationException {
        try (JarFile jar = new JarFile(jarPath.toFile())) {
            List<JarEntry> definitions = new ArrayList<>();
            Map<String, String> classNames = new HashMap<>();
            for (JarEntry entry : (Iterable<JarEntry>) jar.stream()::iterator) {
                String path = entry.getName();
                if (isDefinition(path)) {
                    definitions.add(entry);
                } else if (isMessageClass(path)) {
                    String plain = path.replaceFirst("(JsonConverter)?\\.class$", "");
                    classNames.put(plain.substring(plain.lastIndexOf('/') + 1), plain.replace('/', '.'));
                }
            }
            for (JarEntry entry : definitions) {
                byte[] text = jar.getInputStream(entry).readAllBytes();
                add(artifact(jarPath), release(jarPath), text, classNames, found);
            }
        }
    }

    /** Releases before 3.0 have no JSON converters in Kafka's core; its generated classes are in a package of their own. */
    private static boolean isMessageClass(String path) {
        return path.endsWith("JsonConverter.class") || path.endsWith("Data.class")
            || path.matches(".*/generated/[^/$]+\\.class");
    }

    private static boolean isDefinition(String path) {
        return path.endsWith(".json") && path.matches("(common/)?(message|metadata)/[^/]+");
    }

    /** The artifact name, with the release cut out: {@code kafka-clients}, {@code kafka-clients-test}. */
    private static String artifact(Path jarPath) {
        return jarPath.getFileName().toString().replaceFirst("\\.jar$", "").replaceFirst("-\\d[\\d.]*", "");
    }

    /** The release of an artifact, as its file name has it: {@code 4.4.0}. */
    private static String release(Path jarPath) {
        return jarPath.getFileName().toString().replaceFirst("^.*?-(\\d[\\d.]*\\d).*$", "$1");
    }

    private static void add(String artifact, String release, byte[] text, Map<String, String> classNames, List<MessageType> found)
        throws IOException, ReflectiveOperationException {
        JsonNode definition = DEFINITIONS.readTree(text);
        String name = definition.get("name").asText();
        String kind = definition.get("type").asText();
        boolean suffixed = kind.equals("request") || kind.equals("response") || kind.equals("header");
        String className = classNames.get(suffixed ? name + "Data" : name);
        if (className == null) {
            return;
        }
        Class<?> messageClass = Class.forName(className);
        if (Message.class.isAssignableFrom(messageClass)) {
            found.add(new MessageType(name, kind, artifact, release, definition, messageClass.asSubclass(Message.class)));
        }
    }
}
