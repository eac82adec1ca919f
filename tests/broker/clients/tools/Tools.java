import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs command line tools one after the other, in one process. Each line of the input is JSON: the class, the arguments
 * and the standard input of a tool. Each line of the output has what it printed, and its exit status.
 */
public final class Tools {
    /** Ends a tool. Some tools catch it, and end again with another status: the first one counts. */
    private static final class Ended extends RuntimeException {
        private Ended() {
            super(null, null, false, false);
        }
    }

    private static Integer ended;

    public static void main(String[] arguments) throws Exception {
        Exit.setExitProcedure((status, message) -> {
            ended = ended == null ? Integer.valueOf(status) : ended;
            throw new Ended();
        });
        ObjectMapper json = new ObjectMapper();
        PrintStream out = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = json.readTree(line);
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true));
            System.setErr(System.out);
            System.setIn(new ByteArrayInputStream(asked.get("stdin").asText().getBytes()));
            String[] words = StreamSupport.stream(asked.get("arguments").spliterator(), false).map(JsonNode::asText).toArray(String[]::new);
            int status = run(asked.get("class").asText(), words);
            System.out.flush();
            out.println(json.writeValueAsString(Map.of("status", status, "printed", printed.toString())));
            out.flush();
        }
        Exit.resetExitProcedure();
        System.exit(0);
    }

    private static int run(String class_, String[] arguments) throws Exception {
        ended = null;
        try {
            Class.forName(class_).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Ended)) {
                error.getCause().printStackTrace(System.out);
                return -1;
            }
        }
        return ended == null ? 0 : ended;
    }
}
