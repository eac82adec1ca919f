import java.lang.reflect.Field;
import java.util.StringJoiner;

/**
 * Prints facts of the Kafka release on the class path: the versions of each API as "KEY LOWEST HIGHEST", and each
 * feature as "NAME LOWEST HIGHEST".
 */
public final class ReleaseFacts {
    private static final String SERVER = "org.apache.kafka.server.common.";

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("versions")) {
            printVersions();
        } else {
            printFeatures();
        }
    }

    private static void printVersions() throws Exception {
        Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        for (Object key : keys.getEnumConstants()) {
            short id = keys.getField("id").getShort(key);
            Object lowest = keys.getMethod("oldestVersion").invoke(key);
            print(id, lowest, keys.getMethod("latestVersion").invoke(key));
        }
    }

    private static void printFeatures() throws Exception {
        Class<?> metadata = Class.forName(SERVER + "MetadataVersion");
        Object lowest = first(metadata, "MINIMUM_VERSION", "MINIMUM_KRAFT_VERSION");
        Object highest = metadata.getMethod("latestProduction").invoke(null);
        print("metadata.version", level(metadata, lowest), level(metadata, highest));
        Class<?> features;
        try {
            features = Class.forName(SERVER + "Feature");
        } catch (ClassNotFoundException older) {
            features = Class.forName(SERVER + "Features");
        }
        for (Object feature : features.getEnumConstants()) {
            Object name = features.getMethod("featureName").invoke(feature);
            Object minimum = features.getMethod("minimumProduction").invoke(feature);
            print(name, minimum, features.getMethod("latestProduction").invoke(feature));
        }
    }

    private static Object level(Class<?> metadata, Object version) throws Exception {
        return metadata.getMethod("featureLevel").invoke(version);
    }

    private static Object first(Class<?> owner, String... names) throws Exception {
        for (Field field : owner.getFields()) {
            for (String name : names) {
                if (field.getName().equals(name)) {
                    return field.get(null);
                }
            }
        }
        throw new IllegalStateException(String.join(", ", names));
    }

    private static void print(Object... parts) {
        StringJoiner line = new StringJoiner(" ");
        for (Object part : parts) {
            line.add(String.valueOf(part));
        }
        System.out.println(line);
    }
}
