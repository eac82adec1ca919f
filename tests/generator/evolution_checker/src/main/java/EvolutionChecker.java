import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import org.apache.kafka.message.MessageGenerator;
import org.apache.kafka.message.MessageSpec;
import org.apache.kafka.message.checker.EvolutionVerifier;

/**
 * Kafka's own checker on many pairs: reads two paths per line, separated by a tab, and prints one verdict per line.
 *
 * A verdict is "ok", "checked: REASON" for a rejection of the evolution, or "unread: REASON" for an unreadable file.
 */
public final class EvolutionChecker {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] paths = line.split("\t");
            System.out.println(verdict(new File(paths[0]), new File(paths[1])).replace('\n', ' '));
        }
    }

    private static String verdict(File before, File now) {
        EvolutionVerifier verifier;
        try {
            MessageSpec first = MessageGenerator.JSON_SERDE.readValue(before, MessageSpec.class);
            verifier = new EvolutionVerifier(first, MessageGenerator.JSON_SERDE.readValue(now, MessageSpec.class));
        } catch (Exception error) {
            return "unread: " + error.getMessage();
        }
        try {
            verifier.verify();
            return "ok";
        } catch (Exception error) {
            return "checked: " + error.getMessage();
        }
    }
}
