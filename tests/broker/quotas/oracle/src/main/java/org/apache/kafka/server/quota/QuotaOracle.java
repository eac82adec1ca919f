package org.apache.kafka.server.quota;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Kafka's own managers of quotas: a line of JSON in, a line out. Time stands still until a command moves it.
 *
 * Commands have members "do" and "now" (ms). "open" makes new managers with windows, "limit" sets or removes a quota,
 * and "charge", "refund", "admit" and "most" are about the quota "quota" of a user and a client id.
 */
public final class QuotaOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Clock clock = new Clock();
    private Map<String, ClientQuotaManager> managers = Map.of();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        QuotaOracle oracle = new QuotaOracle();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(oracle.run(JSON.readTree(line))));
            out.flush();
        }
        oracle.close();
    }

    private ObjectNode run(JsonNode command) throws Exception {
        ObjectNode result = JSON.createObjectNode();
        clock.now = command.get("now").asLong();
        switch (command.get("do").asText()) {
            case "open" -> open(command);
            case "limit" -> limit(command);
            default -> result.put("result", ask(command));
        }
        return result;
    }

    private void open(JsonNode command) {
        close();
        var config = new ClientQuotaManagerConfig(command.get("samples").asInt(), command.get("seconds").asInt());
        Metrics metrics = new Metrics(clock);
        managers = Map.of(
            "producer_byte_rate", new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, clock, ""),
            "consumer_byte_rate", new ClientQuotaManager(config, metrics, QuotaType.FETCH, clock, ""),
            "request_percentage", new ClientRequestQuotaManager(config, metrics, clock, "", Optional.empty()),
            "controller_mutation_rate",
                new ControllerMutationQuotaManager(config, metrics, clock, "", Optional.empty()));
    }

    private void close() {
        managers.values().forEach(ClientQuotaManager::shutdown);
    }

    private void limit(JsonNode command) {
        Optional<Quota> quota = command.get("limit").isNull()
            ? Optional.empty() : Optional.of(Quota.upperBound(command.get("limit").asDouble()));
        managers.get(command.get("quota").asText()).updateQuota(
            entity(command, "user", ClientQuotaManager.DEFAULT_USER_ENTITY),
            entity(command, "client", ClientQuotaManager.DEFAULT_USER_CLIENT_ID),
            quota);
    }

    private static Optional<ConfigEntity> entity(JsonNode command, String kind, ConfigEntity byDefault) {
        if (!command.has(kind)) return Optional.empty();
        JsonNode name = command.get(kind);
        if (name.isNull()) return Optional.of(byDefault);
        return Optional.of(kind.equals("user")
            ? new ClientQuotaManager.UserEntity(name.asText()) : new ClientQuotaManager.ClientIdEntity(name.asText()));
    }

    private double ask(JsonNode command) throws Exception {
        ClientQuotaManager manager = managers.get(command.get("quota").asText());
        Session session = new Session(
            new KafkaPrincipal(KafkaPrincipal.USER_TYPE, command.get("user").asText()),
            InetAddress.getLoopbackAddress());
        String client = command.get("client").isNull() ? null : command.get("client").asText();
        double value = command.path("value").asDouble();
        return switch (command.get("do").asText()) {
            case "charge" -> manager instanceof ControllerMutationQuotaManager mutations
                ? mutated(mutations.newPermissiveQuotaFor(session, client), value)
                : manager.maybeRecordAndGetThrottleTimeMs(session, client, value, clock.now);
            case "admit" -> mutated(((ControllerMutationQuotaManager) manager).newStrictQuotaFor(session, client), value);
            case "refund" -> {
                if (manager.quotasEnabled()) manager.unrecordQuotaSensor(session, client, value, clock.now);
                yield 0;
            }
            default -> (int) manager.maxValueInQuotaWindow(session, client);
        };
    }

    private static double mutated(ControllerMutationQuota quota, double permits) {
        try {
            quota.record(permits);
        } catch (ThrottlingQuotaExceededException refused) {
            return refused.throttleTimeMs();
        }
        return quota.throttleTime();
    }

    private static final class Clock implements Time {
        private long now;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long duration) {
            now += duration;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }
    }
}
