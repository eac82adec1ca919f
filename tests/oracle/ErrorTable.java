import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints Kafka's error codes, one a line: code, name, and whether a client may retry. */
public class ErrorTable {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            System.out.println(error.code() + " " + error.name() + " " + retriable);
        }
    }
}
