import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.errors.RetriableException;

/** What all programs here have: a line of JSON for each feature, with the facts that were found, or the error. */
final class Facts {
    private static final long PATIENCE_MS = 120_000;

    private Facts() {}

    static void print(Map<String, Callable<Object>> features) throws Exception {
        ObjectMapper json = new ObjectMapper();
        for (Map.Entry<String, Callable<Object>> each : features.entrySet()) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("feature", each.getKey());
            try {
                line.put("facts", each.getValue().call());
            } catch (Exception error) {
                line.put("error", error.toString());
            }
            System.out.println(json.writeValueAsString(line));
        }
    }

    /** Wait for a condition. A broker that has not heard of something yet does not hold it. */
    static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!holds(condition)) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("never: " + what);
            }
        }
    }

    private static boolean holds(Callable<Boolean> condition) throws Exception {
        try {
            return condition.call();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof RetriableException) {
                return false;
            }
            throw error;
        }
    }

    /** The result of a call, as soon as the broker that it asks has heard of what it is about. */
    static <T> T known(Callable<T> call) throws Exception {
        List<T> found = new ArrayList<>();
        until("a broker knows it", () -> found.add(call.call()));
        return found.get(0);
    }

    /** The name of the error that a call ends with, or "none". */
    static String error(Callable<?> call) {
        try {
            call.call();
            return "none";
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return cause.getClass().getSimpleName();
        }
    }
}
