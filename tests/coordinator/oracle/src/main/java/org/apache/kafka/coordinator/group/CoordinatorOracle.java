package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.ExponentialBackoff;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetricsImpl;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.group.streams.StreamsGroupTopologyDescriptionBackoff;
import org.apache.kafka.coordinator.group.streams.StreamsGroupTopologyDescriptionManager;
import org.apache.kafka.server.share.persister.NoOpStatePersister;
import org.apache.kafka.server.util.PartitionMetadataClient;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * Kafka's own group coordinator (service, runtime, shards) under a virtual clock and an in-memory log:
 * one JSON command a line in, one JSON result a line out.
 *
 * <pre>
 * {"op":"start","config":{"offsets.topic.num.partitions":"1"},"now":0}        first; a later one starts afresh
                                 "bytes":true  each record with its "keyBytes" and "valueBytes" in base64
                                 "quiet":true  no records in results, for measurements
 * {"op":"topics","create":[{"name":"in","partitions":2}],"grow":[],"delete":[],"brokers":[]}
 * {"op":"request","as":"r1","api":"StreamsGroupHeartbeat","version":1,"client":"c","body":{...}}
 * {"op":"advance","ms":100}            {"op":"group-config","group":"g","config":{...}}
 * {"op":"elect","partition":0,"epoch":1}            {"op":"resign","partition":0,"epoch":1}
 * {"op":"end-txn","partition":0,"producer":1,"epoch":0,"commit":true}
 * {"op":"fail-append","error":"NOT_ENOUGH_REPLICAS"}            {"op":"hold","commits":true,"background":true}
 * {"op":"fail-plugin","kind":"permanent"}            the next call of the topology description plugin fails
 * {"op":"commit"}     {"op":"background"}     {"op":"timers"}     {"op":"repeat","times":100000, as for request}
 * </pre>
 *
 * A result carries what happened since the last one: `answers` (by request name, whenever they complete),
 * `records` (batch, key, value, null for a tombstone), `scheduled` and `expired` timers, `background` runs,
 * `plugin` calls.
 */
public final class CoordinatorOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final VirtualTime time;
    private final EventLoop loop = new EventLoop();
    private final OffsetsLog log;
    private final Cluster cluster = new Cluster();
    private final GroupCoordinatorService service;
    private final List<ObjectNode> answers = new ArrayList<>();
    /** Whether records are reported as they were written, too. */
    private final boolean showBytes;
    private final boolean quiet;

    private CoordinatorOracle(JsonNode command) {
        time = new VirtualTime(command.path("now").asLong(0));
        showBytes = command.path("bytes").asBoolean(false);
        quiet = command.path("quiet").asBoolean(false);
        Map<String, Object> properties = new HashMap<>();
        command.path("config").fields().forEachRemaining(e -> properties.put(e.getKey(), e.getValue().asText()));
        log = new OffsetsLog(Map.of("max.message.bytes", command.path("max.message.bytes").asText("1048588")));
        var config = GroupCoordinatorConfig.fromProps(properties);
        var shareConfig = ShareGroupConfig.fromProps(properties);
        var groupConfigs = new GroupConfigManager(config, shareConfig);
        var logContext = new LogContext();
        var metrics = new GroupCoordinatorMetrics();
        var runtime = new CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord>()
            .withTime(time)
            .withTimer(time)
            .withLogContext(logContext)
            .withEventProcessor(loop)
            .withExecutorService(loop)
            .withPartitionWriter(log)
            .withLoader(log)
            .withCoordinatorShardBuilderSupplier(() -> new GroupCoordinatorShard.Builder(config, groupConfigs)
                .withAuthorizerPlugin(Optional.empty()))
            .withWriteTimeout(Duration.ofMillis(config.offsetCommitTimeoutMs()))
            .withCoordinatorRuntimeMetrics(new CoordinatorRuntimeMetricsImpl(new Metrics(), "group", false))
            .withCoordinatorMetrics(metrics)
            .withSerializer(new GroupCoordinatorRecordSerde())
            .withCompression(Compression.NONE)
            .withAppendLingerMs(OptionalInt.of(0))
            .withCachedBufferMaxBytesSupplier(config::cachedBufferMaxBytes)
            .build();
        service = new GroupCoordinatorService(logContext, config, runtime, metrics, groupConfigs,
            new NoOpStatePersister(), time, new NoPartitionMetadata(),
            Optional.ofNullable(config.streamsGroupTopologyDescriptionPlugin(Map.of())), time);
        withoutJitter(service.streamsGroupTopologyDescriptionManager());
        var partitions = config.offsetsTopicPartitions();
        service.startup(() -> partitions);
        for (int partition = 0; partition < partitions; partition++) service.onElection(partition, 1);
        loop.settle();
    }

    /** Lets the back-off of topology descriptions draw nothing at random: each delay is the middle one. */
    private void withoutJitter(StreamsGroupTopologyDescriptionManager manager) {
        try {
            var constructor = StreamsGroupTopologyDescriptionBackoff.class
                .getDeclaredConstructor(Time.class, ExponentialBackoff.class);
            constructor.setAccessible(true);
            var field = StreamsGroupTopologyDescriptionManager.class.getDeclaredField("backoff");
            field.setAccessible(true);
            field.set(manager, constructor.newInstance(time, new ExponentialBackoff(30_000, 2, 3_600_000, 0)));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private void run(JsonNode command) {
        switch (command.get("op").textValue()) {
            case "topics" -> {
                if (log.holdsCommits() && !command.path("delete").isEmpty()) {
                    throw new IllegalStateException("the service waits for the commit of what a deletion writes");
                }
                loop.runWithEventsAtOnce(() -> cluster.change(command, service::onMetadataUpdate));
            }
            case "request" -> request(command);
            case "advance" -> time.advanceTo(time.milliseconds() + command.get("ms").asLong(), loop::settle);
            case "group-config" -> {
                var properties = new Properties();
                command.get("config").fields()
                    .forEachRemaining(e -> properties.put(e.getKey(), e.getValue().asText()));
                service.updateGroupConfig(command.get("group").textValue(), properties);
            }
            case "elect" -> service.onElection(command.get("partition").asInt(), command.get("epoch").asInt());
            case "resign" -> service.onResignation(command.get("partition").asInt(),
                OptionalInt.of(command.get("epoch").asInt()));
            case "end-txn" -> service.completeTransaction(
                new TopicPartition(Topic.GROUP_METADATA_TOPIC_NAME, command.path("partition").asInt()),
                command.get("producer").asLong(), (short) command.get("epoch").asInt(), 0,
                command.get("commit").asBoolean() ? TransactionResult.COMMIT : TransactionResult.ABORT, (short) 2);
            case "repeat" -> repeat(command);
            case "fail-plugin" -> TopologyDescriptions.failNext(command.get("kind").textValue());
            case "fail-append" -> log.nextError = Errors.valueOf(command.get("error").textValue());
            case "hold" -> {
                if (command.has("commits")) log.holdCommits = command.get("commits").asBoolean();
                if (command.has("background")) loop.holdBackground = command.get("background").asBoolean();
            }
            case "commit" -> log.commit();
            case "background" -> loop.runBackground();
            case "start", "timers" -> { }
            default -> throw new IllegalArgumentException("unknown op " + command.get("op"));
        }
        loop.settle();
        // Work of zero delay (a classic group's first join, internal wake-ups) belongs to the same step.
        time.advanceTo(time.milliseconds(), loop::settle);
    }

    private static RequestContext context(JsonNode command, ApiKeys api, short version) {
        var header = new RequestHeader(api, version, command.path("client").asText("client"), 0);
        return new RequestContext(header, "1", InetAddress.getLoopbackAddress(),
            new KafkaPrincipal("User", command.path("user").asText("ANONYMOUS")),
            ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT), SecurityProtocol.PLAINTEXT,
            ClientInformation.EMPTY, false);
    }

    private void request(JsonNode command) {
        var name = command.path("as").asText(command.get("api").textValue());
        var api = apiNamed(command.get("api").textValue());
        var version = (short) command.path("version").asInt(api.latestVersion());
        var context = context(command, api, version);
        CompletableFuture<Api.Answer> future;
        try {
            future = Api.call(service, api, context, Api.read(api, command.get("body"), version));
        } catch (RuntimeException e) {
            future = CompletableFuture.failedFuture(e);
        }
        future.whenComplete((answer, error) -> {
            var node = JSON.createObjectNode().put("to", name);
            if (error != null) {
                node.put("failed", String.valueOf(error));
            } else {
                node.set("body", Api.write(answer.response(), version));
                if (!answer.creatable().isEmpty()) node.putArray("creates").addAll(answer.creatable());
            }
            answers.add(node);
        });
    }

    /** The same request many times, with no JSON in between: how many the coordinator answers in a second of this thread. */
    private void repeat(JsonNode command) {
        var api = apiNamed(command.get("api").textValue());
        var context = context(command, api, (short) command.path("version").asInt(api.latestVersion()));
        var request = Api.read(api, command.get("body"), context.apiVersion());
        int times = command.get("times").asInt();
        double best = 0;
        var threads = ManagementFactory.getThreadMXBean();
        for (int round = 0; round < 5; round++) {
            long start = threads.getCurrentThreadCpuTime();
            for (int i = 0; i < times; i++) {
                Api.call(service, api, context, request);
                loop.settle();
            }
            best = Math.max(best, times / ((threads.getCurrentThreadCpuTime() - start) / 1e9));
        }
        answers.add(JSON.createObjectNode().put("to", "repeat").put("per_second", Math.round(best)));
    }

    private ObjectNode result(JsonNode command) {
        var result = JSON.createObjectNode().put("op", command.get("op").textValue()).put("now", time.milliseconds());
        if (!answers.isEmpty()) result.putArray("answers").addAll(answers);
        answers.clear();
        var appended = log.takeAppended();
        if (!appended.isEmpty() && !quiet) {
            var records = result.putArray("records");
            for (var entry : appended) records.add(json(entry));
        }
        timers(result, "scheduled", time.takeScheduled());
        timers(result, "expired", time.takeExpired());
        if (command.get("op").textValue().equals("timers")) timers(result, "pending", time.pending());
        var calls = TopologyDescriptions.takeCalls();
        if (!calls.isEmpty()) calls.forEach(result.putArray("plugin")::add);
        var background = loop.takeBackgroundRuns();
        if (background > 0) result.put("background", background);
        if (loop.backgroundWaiting() > 0) result.put("waiting", loop.backgroundWaiting());
        return result;
    }

    private static void timers(ObjectNode result, String field, List<VirtualTime.Due> timers) {
        if (timers.isEmpty()) return;
        ArrayNode array = result.putArray(field);
        for (var due : timers) array.addArray().add(due.key()).add(due.atMs());
    }

    private ObjectNode json(OffsetsLog.Entry entry) {
        var node = JSON.createObjectNode().put("batch", entry.batch());
        if (entry.partition() != 0) node.put("partition", entry.partition());
        if (entry.producerId() >= 0) node.put("producer", entry.producerId()).put("epoch", entry.producerEpoch());
        if (entry.marker() != null) return node.put("marker", entry.marker().name());
        if (showBytes) node.put("keyBytes", entry.key()).put("valueBytes", entry.value());
        var record = entry.record();
        var key = record.key();
        node.put("type", key.getClass().getSimpleName().replaceAll("Key$", ""));
        node.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(key));
        if (record.value() == null) return node.putNull("value");
        node.put("version", record.value().version());
        node.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(
            record.value().message(), record.value().version()));
        return node;
    }

    /** Share groups ask for partition end offsets; the oracle has no log to look at. */
    private static final class NoPartitionMetadata implements PartitionMetadataClient {
        @Override
        public Map<TopicPartition, CompletableFuture<OffsetResponse>> listLatestOffsets(Set<TopicPartition> topics) {
            return Map.of();
        }

        @Override
        public void close() { }
    }

    private static ApiKeys apiNamed(String name) {
        for (var api : ApiKeys.values()) if (api.name.equals(name)) return api;
        throw new IllegalArgumentException("no api named " + name);
    }

    public static void main(String[] arguments) throws Exception {
        CountedIds.install();
        if (arguments.length > 0 && arguments[0].equals("assign")) {
            AssignorOracle.main(arguments);
            return;
        }
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        CoordinatorOracle oracle = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isBlank() || line.startsWith("#")) continue;
            ObjectNode result;
            try {
                var command = JSON.readTree(line);
                if (command.get("op").textValue().equals("start")) {
                    CountedIds.restart();
                    TopologyDescriptions.restart();
                    oracle = new CoordinatorOracle(command);
                }
                oracle.run(command);
                result = oracle.result(command);
            } catch (Exception e) {
                result = JSON.createObjectNode().put("error", e.toString());
                e.printStackTrace();
            }
            out.println(JSON.writeValueAsString(result));
        }
    }
}
