package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Kafka's own log of one partition: a line of JSON in, a line out. Time stands still until a command moves it.
 *
 * Each command has a member "do", which names a method below, and "now" in milliseconds. A refused command is answered
 * with "error" (the number), "message" and, for refused records, "records".
 */
public final class StorageOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Clock clock = new Clock();
    private final Tasks tasks = new Tasks();
    private final Map<Integer, VerificationGuard> guards = new HashMap<>();
    private UnifiedLog log;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StorageOracle oracle = new StorageOracle();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(oracle.answer(JSON.readTree(line))));
            out.flush();
        }
    }

    private ObjectNode answer(JsonNode command) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            clock.now = command.path("now").asLong(clock.now);
            run(command, answer);
        } catch (RecordValidationException refused) {
            fail(answer, refused.invalidException());
            ArrayNode records = answer.putArray("records");
            refused.recordErrors().forEach(each -> records.addArray().add(each.batchIndex).add(each.message));
        } catch (Throwable problem) {
            fail(answer, problem);
        }
        return answer;
    }

    private static void fail(ObjectNode answer, Throwable problem) {
        answer.removeAll();
        answer.put("error", Errors.forException(problem).code()).put("message", String.valueOf(problem.getMessage()));
        answer.put("class", problem.getClass().getSimpleName());
    }

    private void run(JsonNode command, ObjectNode answer) throws Exception {
        switch (command.get("do").asText()) {
            case "open": open(command); break;
            case "append": append(command, answer); break;
            case "marker": marker(command, answer); break;
            case "verify": verify(command, answer); break;
            case "read": read(command, answer); break;
            case "time": time(command, answer); break;
            case "epoch": epoch(command, answer); break;
            case "delete_records": deleteRecords(command); break;
            case "roll": log.roll(); break;
            case "retain": log.deleteOldSegments(); break;
            case "compact": compact(command, answer); break;
            case "tasks": tasks.run(clock.now); break;
            case "flush": log.flush(false); break;
            case "close": close(); break;
            case "state": break;
            default: throw new IllegalArgumentException(command.get("do").asText());
        }
        if (log != null && command.path("state").asBoolean(true)) state(answer);
    }

    private void open(JsonNode command) throws Exception {
        Properties properties = new Properties();
        command.path("config").fields().forEachRemaining(each -> properties.setProperty(each.getKey(), each.getValue().asText()));
        guards.clear();
        tasks.queue.clear();
        log = UnifiedLog.create(
            new File(command.get("dir").asText()), new LogConfig(properties), command.path("log_start").asLong(0),
            command.path("recovery_point").asLong(0), tasks, new BrokerTopicStats(), clock, 15 * 60 * 1000,
            new ProducerStateManagerConfig(command.path("expiration").asInt(86_400_000), true), 600_000,
            new LogDirFailureChannel(10), command.path("clean").asBoolean(true),
            Optional.of(Uuid.fromString(command.get("topic_id").asText())));
        log.updateHighWatermark(log.logEndOffset());
    }

    /** Close the log as LogManager does when a broker stops. */
    private void close() throws Exception {
        log.prepareActiveSegmentForClose();
        log.flush(true);
        log.close();
    }

    private void append(JsonNode command, ObjectNode answer) throws Exception {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(command)));
        int version = command.path("produce_version").asInt(-1);
        if (version >= 0) ProduceRequest.validateRecords((short) version, records);
        int epoch = command.get("leader_epoch").asInt();
        AppendOrigin origin = AppendOrigin.valueOf(command.path("origin").asText("CLIENT"));
        VerificationGuard guard = guards.getOrDefault(command.path("guard").asInt(-1), VerificationGuard.SENTINEL);
        LogAppendInfo info = origin == AppendOrigin.REPLICATION ? log.appendAsFollower(records, epoch)
            : log.appendAsLeader(records, epoch, origin, RequestLocal.noCaching(), guard,
                (short) command.path("transaction_version").asInt(0));
        appended(info, answer);
    }

    private void appended(LogAppendInfo info, ObjectNode answer) throws Exception {
        log.updateHighWatermark(log.logEndOffset());
        answer.put("base", info.firstOffset()).put("last", info.lastOffset()).put("time", info.logAppendTime());
    }

    private void marker(JsonNode command, ObjectNode answer) throws Exception {
        ControlRecordType type = command.get("committed").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(clock.now, command.get("producer_id").asLong(),
            (short) command.get("producer_epoch").asInt(),
            new EndTransactionMarker(type, command.get("coordinator_epoch").asInt()));
        appended(log.appendAsLeader(records, command.get("leader_epoch").asInt(), AppendOrigin.COORDINATOR,
            RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) command.path("transaction_version").asInt(0)), answer);
    }

    private void verify(JsonNode command, ObjectNode answer) {
        VerificationGuard guard = log.maybeStartTransactionVerification(command.get("producer_id").asLong(),
            command.get("sequence").asInt(), (short) command.get("producer_epoch").asInt(), command.get("bumps_epoch").asBoolean());
        guards.put(command.get("guard").asInt(), guard);
        answer.put("needed", guard != VerificationGuard.SENTINEL);
    }

    private void read(JsonNode command, ObjectNode answer) throws Exception {
        boolean committed = command.path("committed").asBoolean();
        FetchDataInfo info = log.read(command.get("offset").asLong(), command.get("max_bytes").asInt(),
            committed ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK, command.path("min_one").asBoolean(true));
        byte[] data = new byte[0];
        if (info.records instanceof FileRecords) {
            FileRecords records = (FileRecords) info.records;
            ByteBuffer buffer = ByteBuffer.allocate(records.sizeInBytes());
            records.readInto(buffer, 0);
            data = Utils.toArray(buffer);
        }
        answer.put("data", Base64.getEncoder().encodeToString(data));
        if (info.abortedTransactions.isPresent()) {
            ArrayNode aborted = answer.putArray("aborted");
            info.abortedTransactions.get().forEach(each -> aborted.addArray().add(each.producerId()).add(each.firstOffset()));
        }
    }

    private void time(JsonNode command, ObjectNode answer) {
        Optional<FileRecords.TimestampAndOffset> found =
            log.fetchOffsetByTimestamp(command.get("timestamp").asLong(), Optional.empty()).timestampAndOffsetOpt();
        found.ifPresent(each -> answer.putArray("found").add(each.offset).add(each.timestamp).add(each.leaderEpoch.orElse(-1)));
    }

    private void epoch(JsonNode command, ObjectNode answer) {
        Optional<OffsetAndEpoch> found = log.endOffsetForEpoch(command.get("epoch").asInt());
        answer.putArray("found").add(found.map(OffsetAndEpoch::epoch).orElse(-1)).add(found.map(OffsetAndEpoch::offset).orElse(-1L));
    }

    private void deleteRecords(JsonNode command) {
        log.maybeIncrementLogStartOffset(command.get("offset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
    }

    private void compact(JsonNode command, ObjectNode answer) throws Exception {
        Optional<Long> clean = command.hasNonNull("clean_offset") ? Optional.of(command.get("clean_offset").asLong()) : Optional.empty();
        LogCleanerManager.OffsetsToClean range = LogCleanerManager.cleanableOffsets(log, clean, clock.now);
        LogToClean wanted = new LogToClean(log, range.firstDirtyOffset(), range.firstUncleanableDirtyOffset(), true);
        answer.put("ratio", Double.isNaN(wanted.cleanableRatio()) ? 0 : wanted.cleanableRatio());
        answer.put("first_dirty", range.firstDirtyOffset()).put("uncleanable", wanted.firstUncleanableOffset());
        if (wanted.cleanableBytes() == 0) return;
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(1 << 20, "MD5"), 1 << 16, 1 << 24, 0.9,
            new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "throttler", "entries", clock), clock, partition -> { });
        answer.put("clean_offset", cleaner.clean(wanted).getKey());
    }

    private void state(ObjectNode answer) throws Exception {
        ObjectNode state = answer.putObject("state");
        state.put("start", log.logStartOffset()).put("end", log.logEndOffset());
        state.put("high_watermark", log.highWatermark()).put("stable", log.lastStableOffset());
        ArrayNode segments = state.putArray("segments");
        for (LogSegment each : log.logSegments()) segments.addArray().add(each.baseOffset()).add(each.size());
        ArrayNode epochs = state.putArray("epochs");
        log.leaderEpochCache().epochEntries().forEach(each -> epochs.addArray().add(each.epoch()).add(each.startOffset()));
        ArrayNode producers = state.putArray("producers");
        Map<Long, ProducerStateEntry> sorted = new TreeMap<>(log.producerStateManager().activeProducers());
        sorted.forEach((id, each) -> producers.addArray().add(id).add(each.producerEpoch()).add(each.lastSeq())
            .add(each.lastTimestamp()).add(each.coordinatorEpoch()).add(each.currentTxnFirstOffset().orElse(-1)));
    }

    private static byte[] bytes(JsonNode command) {
        return Base64.getDecoder().decode(command.get("data").asText());
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

    /** Tasks without a delay run at once; others when the command "tasks" finds them due; periodic ones never. */
    private final class Tasks implements Scheduler {
        private final TreeMap<Long, List<Runnable>> queue = new TreeMap<>();

        @Override
        public void startup() { }

        @Override
        public void shutdown() { }

        @Override
        public void resizeThreadPool(int size) { }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) {
            if (period < 0 && delay <= 0) task.run();
            else if (period < 0) queue.computeIfAbsent(clock.now + delay, key -> new ArrayList<>()).add(task);
            return new Done();
        }

        private void run(long now) {
            while (!queue.isEmpty() && queue.firstKey() <= now) queue.pollFirstEntry().getValue().forEach(Runnable::run);
        }
    }

    private static final class Done extends CompletableFuture<Object> implements ScheduledFuture<Object> {
        @Override
        public long getDelay(TimeUnit unit) {
            return 0;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }
    }
}
