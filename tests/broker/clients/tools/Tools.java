import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs command line tools one after the other, in one process. Each line of the input is JSON: the class, the arguments
 * and the standard input of a tool, and the seconds after which it is interrupted. Each line of the output has what it
 * printed, and its exit status. Each run loads the classes of the tools again, because some of them count in static
 * fields.
 */
public final class Tools {
    private static final String PACKAGE = "org.apache.kafka.tools.";
    private static final int TIMED_OUT = 124;

    /** Ends a tool. Some tools catch it, and end again with another status: the first one counts. */
    private static final class Ended extends RuntimeException {
        private Ended() {
            super(null, null, false, false);
        }
    }

    /** Loads the tools itself, and everything else as usual. */
    private static final class ToolLoader extends URLClassLoader {
        private ToolLoader(URL jar) {
            super(new URL[] {jar}, Tools.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith(PACKAGE)) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                try {
                    return loaded == null ? findClass(name) : loaded;
                } catch (ClassNotFoundException inAnotherJar) {
                    return super.loadClass(name, resolve);
                }
            }
        }
    }

    private static volatile Integer ended;
    private static final List<Runnable> atEnd = new CopyOnWriteArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Exit.Procedure end = (status, message) -> {
            ended = ended == null ? Integer.valueOf(status) : ended;
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, hook) -> atEnd.add(hook));
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
            int status = runFor(asked.path("seconds").asInt(60), asked.get("class").asText(), words);
            System.out.flush();
            out.println(json.writeValueAsString(Map.of("status", status, "printed", printed.toString())));
            out.flush();
        }
        out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static int runFor(int seconds, String class_, String[] arguments) throws Exception {
        ended = null;
        atEnd.clear();
        ExecutorService thread = Executors.newSingleThreadExecutor(Tools::daemon);
        Future<Integer> run = thread.submit(() -> run(class_, arguments));
        try {
            int status = run.get(seconds, TimeUnit.SECONDS);
            thread.submit(() -> atEnd.forEach(Runnable::run)).get(seconds, TimeUnit.SECONDS);
            return status;
        } catch (TimeoutException late) {
            return TIMED_OUT;
        } finally {
            thread.shutdownNow();
        }
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work, "main");
        thread.setDaemon(true);
        return thread;
    }

    private static int run(String class_, String[] arguments) throws Exception {
        URL jar = Class.forName(class_).getProtectionDomain().getCodeSource().getLocation();
        try (ToolLoader loader = new ToolLoader(jar)) {
            loader.loadClass(class_).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Ended)) {
                error.getCause().printStackTrace(System.out);
                return -1;
            }
        }
        return ended == null ? 0 : ended;
    }
}
