package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** __consumer_offsets in memory: what the runtime appends to, what it loads from, what the oracle reports. */
final class OffsetsLog implements PartitionWriter, CoordinatorLoader<CoordinatorRecord> {
    /** One appended record or transaction marker, with the batch it travelled in. */
    record Entry(int partition, int batch, long offset, long producerId, short producerEpoch,
                 CoordinatorRecord record, TransactionResult marker, byte[] key, byte[] value) { }

    private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
    private final Map<TopicPartition, List<Entry>> logs = new HashMap<>();
    private final Map<TopicPartition, List<Listener>> listeners = new HashMap<>();
    private final Map<TopicPartition, Integer> committed = new HashMap<>();
    private final List<Entry> appended = new ArrayList<>();
    private final LogConfig config;
    private int batches;
    /** The error the next append answers with, once. */
    Errors nextError = Errors.NONE;
    /** When true appends are not committed (no high watermark update) until `commit`. */
    boolean holdCommits;

    OffsetsLog(Map<String, ?> config) {
        this.config = new LogConfig(config);
    }

    List<Entry> takeAppended() {
        var copy = List.copyOf(appended);
        appended.clear();
        return copy;
    }

    void commit() {
        logs.forEach(this::notifyCommitted);
    }

    /** Whether something that was appended waits for `commit`, or would. */
    boolean holdsCommits() {
        return holdCommits
            || logs.entrySet().stream().anyMatch(e -> committed.getOrDefault(e.getKey(), 0) < e.getValue().size());
    }

    private void notifyCommitted(TopicPartition tp, List<Entry> log) {
        committed.put(tp, log.size());
        for (var listener : List.copyOf(listeners.getOrDefault(tp, List.of()))) {
            listener.onHighWatermarkUpdated(tp, log.size());
        }
    }

    @Override
    public long append(TopicPartition tp, VerificationGuard guard, MemoryRecords records, short transactionVersion) {
        if (nextError != Errors.NONE) {
            var error = nextError;
            nextError = Errors.NONE;
            throw error.exception();
        }
        var log = logs.computeIfAbsent(tp, unused -> new ArrayList<>());
        for (RecordBatch batch : records.batches()) {
            var number = batches++;
            for (var record : batch) {
                TransactionResult marker = null;
                CoordinatorRecord decoded = null;
                if (batch.isControlBatch()) {
                    marker = ControlRecordType.parse(record.key()) == ControlRecordType.COMMIT
                        ? TransactionResult.COMMIT : TransactionResult.ABORT;
                } else {
                    decoded = serde.deserialize(record.key(), record.value());
                }
                var entry = new Entry(tp.partition(), number, log.size(), batch.producerId(),
                    batch.producerEpoch(), decoded, marker,
                    Utils.toNullableArray(record.key()), Utils.toNullableArray(record.value()));
                log.add(entry);
                appended.add(entry);
            }
        }
        if (!holdCommits) notifyCommitted(tp, log);
        return log.size();
    }

    @Override
    public CompletableFuture<LoadSummary> load(TopicPartition tp, CoordinatorPlayback<CoordinatorRecord> coordinator) {
        var log = logs.getOrDefault(tp, List.of());
        try {
            for (var entry : log) {
                if (entry.marker != null) {
                    coordinator.replayEndTransactionMarker(entry.producerId, entry.producerEpoch, entry.marker);
                } else {
                    coordinator.replay(entry.offset, entry.producerId, entry.producerEpoch, entry.record);
                }
            }
        } catch (RuntimeException cause) {
            // A broker's loader fails its future; it never throws.
            return CompletableFuture.failedFuture(cause);
        }
        if (!log.isEmpty()) {
            coordinator.updateLastWrittenOffset((long) log.size());
            coordinator.updateLastCommittedOffset((long) log.size());
        }
        return CompletableFuture.completedFuture(new LoadSummary(0, 0, 0, log.size(), 0));
    }

    @Override
    public void registerListener(TopicPartition tp, Listener listener) {
        listeners.computeIfAbsent(tp, unused -> new ArrayList<>()).add(listener);
    }

    @Override
    public void deregisterListener(TopicPartition tp, Listener listener) {
        listeners.getOrDefault(tp, new ArrayList<>()).remove(listener);
    }

    @Override
    public LogConfig config(TopicPartition tp) {
        return config;
    }

    @Override
    public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(
        TopicPartition tp, String transactionalId, long producerId, short producerEpoch, int apiVersion
    ) {
        return CompletableFuture.completedFuture(VerificationGuard.SENTINEL);
    }

    @Override
    public CompletableFuture<Void> deleteRecords(TopicPartition tp, long deleteBeforeOffset) {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public void close() { }
}
