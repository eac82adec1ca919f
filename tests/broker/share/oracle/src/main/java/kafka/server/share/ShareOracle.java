package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ShareFetchResponseData.AcquiredRecords;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfigProvider;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateResult;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateResult;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;

/**
 * Kafka's own share partition: a line of JSON in, a line out. Time stands still until a command moves it.
 *
 * A command has members "do" and "now" (ms), to which the clock moves first. "open" makes a share partition of a
 * "start" and "states", "config" changes the settings of its group, and "persister" tells whether writes "fail".
 * "acquire", "acknowledge", "release", "log_starts" and "wait" are what can happen to it. An answer has the "error",
 * or CRASHED for one that Kafka does not expect, what was "acquired", each of the "writes" to the persister, and the state afterwards.
 */
public final class ShareOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TopicIdPartition PLACE = new TopicIdPartition(new Uuid(1, 2), 0, "topic");

    private final Clock clock = new Clock();
    private final Store store = new Store();
    private final Settings settings = new Settings();
    private Alarms alarms = new Alarms();
    private SharePartition partition;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ShareOracle oracle = new ShareOracle();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(oracle.run(JSON.readTree(line))));
            out.flush();
        }
    }

    private ObjectNode run(JsonNode command) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        store.writes = answer.putArray("writes");
        alarms.advanceTo(command.get("now").asLong());
        String error = Errors.NONE.name();
        try {
            perform(command, answer);
        } catch (CompletionException failed) {
            error = Errors.forException(failed.getCause()).name();
        } catch (NullPointerException failed) {
            error = "CRASHED";
        }
        answer.put("error", error);
        if (partition.partitionState() == SharePartition.SharePartitionState.ACTIVE) show(answer);
        return answer;
    }

    private void perform(JsonNode command, ObjectNode answer) {
        switch (command.get("do").asText()) {
            case "open" -> open(command);
            case "config" -> settings.learn(command);
            case "persister" -> store.fails = command.get("fails").asBoolean();
            case "acquire" -> acquire(command, answer.putArray("acquired"));
            case "acknowledge" -> finish(partition.acknowledge(command.get("member").asText(), said(command)));
            case "release" -> finish(partition.releaseAcquiredRecords(command.get("member").asText()));
            case "log_starts" -> partition.updateCacheAndOffsets(command.get("offset").asLong());
            case "wait" -> { }
            default -> throw new IllegalArgumentException(command.toString());
        }
    }

    private void open(JsonNode command) {
        alarms = new Alarms();
        store.fails = false;
        settings.learn(command);
        store.read(command);
        partition = new SharePartition("group", PLACE, 0, 0, 0, 0, alarms, clock, store, null, key -> { }, settings,
            null, () -> false, null);
        finish(partition.maybeInitialize());
    }

    private static void finish(CompletableFuture<Void> result) {
        if (!result.isDone()) throw new IllegalStateException("not answered");
        result.join();
    }

    private void acquire(JsonNode command, ArrayNode acquired) {
        FetchPartitionData fetched = new FetchPartitionData(Errors.NONE, Long.MAX_VALUE, 0, log(command),
            Optional.empty(), OptionalLong.empty(), Optional.empty(), OptionalInt.empty(), false);
        for (AcquiredRecords each : partition.acquire(command.get("member").asText(),
                ShareAcquireMode.forId((byte) command.get("mode").asInt()), command.get("batch_size").asInt(),
                command.get("max_records").asInt(), command.get("fetch_offset").asLong(), fetched,
                FetchIsolation.HIGH_WATERMARK).acquiredRecords()) {
            acquired.addArray().add(each.firstOffset()).add(each.lastOffset()).add(each.deliveryCount());
        }
    }

    /** The batches of the log from "batches": the first and the last offset of each. */
    private static MemoryRecords log(JsonNode command) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        for (JsonNode each : command.get("batches")) {
            long first = each.get(0).asLong();
            long last = each.get(1).asLong();
            try (var builder = MemoryRecords.builder(buffer, RecordBatch.MAGIC_VALUE_V2, Compression.NONE,
                    TimestampType.CREATE_TIME, first)) {
                builder.appendWithOffset(first, 0, null, new byte[0]);
                if (last > first) builder.appendWithOffset(last, 0, null, new byte[0]);
            }
        }
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    private static List<ShareAcknowledgementBatch> said(JsonNode command) {
        List<ShareAcknowledgementBatch> said = new ArrayList<>();
        for (JsonNode each : command.get("said")) {
            List<Byte> types = new ArrayList<>();
            for (JsonNode type : each.get(2)) types.add((byte) type.asInt());
            said.add(new ShareAcknowledgementBatch(each.get(0).asLong(), each.get(1).asLong(), types));
        }
        return said;
    }

    private void show(ObjectNode answer) {
        answer.put("next", partition.nextFetchOffset());
        answer.put("start", partition.startOffset());
        answer.put("end", partition.endOffset());
        answer.put("complete", partition.deliveryCompleteCount());
        answer.put("can_acquire", partition.canAcquireRecords());
        SharePartition.GapWindow gap = partition.persisterReadResultGapWindow();
        if (gap == null || gap.endOffset() != partition.endOffset()) answer.putNull("gap");
        else answer.put("gap", gap.gapStartOffset());
        answer.put("stuck", isStuck());
        ArrayNode batches = answer.putArray("batches");
        for (InFlightBatch batch : partition.cachedState().values()) {
            ArrayNode states = batches.addArray().add(batch.firstOffset()).add(batch.lastOffset())
                .add(batch.offsetState() == null).addArray();
            if (batch.offsetState() == null) {
                states.addArray().add(batch.firstOffset()).add(batch.lastOffset()).add(batch.batchState().id())
                    .add(batch.batchDeliveryCount()).add(batch.batchMemberId());
            } else {
                batch.offsetState().forEach((offset, state) -> show(states, offset, state));
            }
        }
    }

    /** Whether Kafka will look for the start offset in the states of a batch that does not have it, and fail. */
    private boolean isStuck() {
        var entry = partition.cachedState().floorEntry(partition.startOffset());
        return entry != null && entry.getValue().offsetState() != null
            && !entry.getValue().offsetState().containsKey(partition.startOffset());
    }

    private static void show(ArrayNode states, long offset, InFlightState state) {
        states.addArray().add(offset).add(offset).add(state.state().id()).add(state.deliveryCount())
            .add(state.memberId());
    }

    /** The settings of the group. */
    private static final class Settings extends ShareGroupConfigProvider {
        private int lockMs;
        private int deliveries;
        private int locks;
        private boolean renews;

        Settings() {
            super(null);
        }

        void learn(JsonNode command) {
            lockMs = command.get("lock_ms").asInt();
            deliveries = command.get("deliveries").asInt();
            locks = command.get("locks").asInt();
            renews = command.get("renews").asBoolean();
        }

        @Override
        public int recordLockDurationMsOrDefault(String group, int otherwise) {
            return lockMs;
        }

        @Override
        public int deliveryCountLimitOrDefault(String group, int otherwise) {
            return deliveries;
        }

        @Override
        public int partitionMaxRecordLocksOrDefault(String group, int otherwise) {
            return locks;
        }

        @Override
        public boolean isRenewAcknowledgeEnabled(String group) {
            return renews;
        }
    }

    /** Gives the state that a command named, and shows what is written. */
    private static final class Store implements Persister {
        private long start;
        private List<PersisterStateBatch> states;
        private ArrayNode writes;
        private boolean fails;

        void read(JsonNode command) {
            start = command.get("start").asLong();
            states = new ArrayList<>();
            for (JsonNode each : command.get("states")) {
                states.add(new PersisterStateBatch(each.get(0).asLong(), each.get(1).asLong(),
                    (byte) each.get(2).asInt(), (short) each.get(3).asInt()));
            }
        }

        @Override
        public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
            var read = PartitionFactory.newPartitionAllData(0, 0, start, Errors.NONE.code(), "", states);
            return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder()
                .setTopicsData(List.of(new TopicData<>(PLACE.topicId(), List.of(read)))).build());
        }

        @Override
        public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
            PartitionStateBatchData data = request.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            ObjectNode write = writes.addObject();
            write.put("start", data.startOffset()).put("complete", data.deliveryCompleteCount());
            ArrayNode written = write.putArray("states");
            for (PersisterStateBatch each : data.stateBatches()) {
                written.addArray().add(each.firstOffset()).add(each.lastOffset()).add(each.deliveryState())
                    .add(each.deliveryCount());
            }
            short error = (fails ? Errors.COORDINATOR_NOT_AVAILABLE : Errors.NONE).code();
            var result = PartitionFactory.newPartitionErrorData(0, error, "");
            return CompletableFuture.completedFuture(new WriteShareGroupStateResult.Builder()
                .setTopicsData(List.of(new TopicData<>(PLACE.topicId(), List.of(result)))).build());
        }

        @Override
        public CompletableFuture<InitializeShareGroupStateResult> initializeState(
                InitializeShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(
                ReadShareGroupStateSummaryParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void stop() {
        }
    }

    /** Timers that run when a command moves the clock, in the order of their times. */
    private final class Alarms implements Timer {
        private final TreeMap<Long, List<TimerTaskEntry>> waiting = new TreeMap<>();

        @Override
        public void add(TimerTask task) {
            long at = clock.now + task.delayMs;
            waiting.computeIfAbsent(at, time -> new ArrayList<>()).add(new TimerTaskEntry(task, at));
        }

        void advanceTo(long now) {
            while (!waiting.isEmpty() && waiting.firstKey() <= now) {
                clock.now = Math.max(clock.now, waiting.firstKey());
                for (TimerTaskEntry entry : waiting.pollFirstEntry().getValue()) {
                    if (!entry.cancelled()) entry.timerTask.run();
                }
            }
            clock.now = now;
        }

        @Override
        public boolean advanceClock(long timeoutMs) {
            throw new UnsupportedOperationException();
        }

        @Override
        public int size() {
            return waiting.size();
        }

        @Override
        public void close() {
        }
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
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }
    }
}
