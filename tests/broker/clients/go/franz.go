package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type franz struct {
	place
	client *kgo.Client
	admin  *kadm.Client
}

func franzSession(where place) []feature {
	client, err := kgo.NewClient(kgo.SeedBrokers(where.servers), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		panic(err)
	}
	f := franz{where, client, kadm.NewClient(client)}
	return []feature{
		{"records", f.records},
		{"gzip", f.codec("gzip", kgo.GzipCompression())},
		{"snappy", f.codec("snappy", kgo.SnappyCompression())},
		{"lz4", f.codec("lz4", kgo.Lz4Compression())},
		{"zstd", f.codec("zstd", kgo.ZstdCompression())},
		{"idempotence", f.codec("idempotence", kgo.NoCompression())},
		{"group", f.group("group")},
		{"consumer-group", f.group("consumer-group", kgo.ServerSideBalancer())},
		{"transactions", f.transactions},
		{"transactional-offsets", f.transactionalOffsets},
		{"times", f.times},
		{"topics", f.topics},
		{"groups", f.groups},
		{"delete-records", f.deleteRecords},
		{"acls", f.acls},
		{"logins", f.logins},
	}
}

func (f franz) open(more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(f.servers)}, more...)...)
}

func (f franz) read(ctx context.Context, topic string, count int, more ...kgo.Opt) ([]*kgo.Record, error) {
	start := map[string]map[int32]kgo.Offset{f.name(topic): {0: kgo.NewOffset().AtStart()}}
	client, err := f.open(append(more, kgo.ConsumePartitions(start))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var found []*kgo.Record
	for len(found) < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		found = append(found, fetches.Records()...)
	}
	return found, nil
}

func (f franz) records(ctx context.Context) (any, error) {
	for n := range 3 {
		sent := &kgo.Record{
			Topic: f.name("records"), Key: fmt.Append(nil, "k", n), Value: fmt.Append(nil, "v", n),
			Headers:   []kgo.RecordHeader{{Key: "h", Value: fmt.Append(nil, "h", n)}},
			Timestamp: time.UnixMilli(startTime + int64(n)),
		}
		if err := f.client.ProduceSync(ctx, sent).FirstErr(); err != nil {
			return nil, err
		}
	}
	read, err := f.read(ctx, "records", 3)
	found := []record{}
	for _, each := range read {
		found = append(found, record{each.Offset, string(each.Key), string(each.Value),
			string(each.Headers[0].Value), each.Timestamp.UnixMilli()})
	}
	return found, err
}

func (f franz) codec(topic string, codec kgo.CompressionCodec) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		client, err := f.open(kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(100*time.Millisecond))
		if err != nil {
			return nil, err
		}
		defer client.Close()
		var sent []*kgo.Record
		for range batch {
			sent = append(sent, &kgo.Record{Topic: f.name(topic), Value: []byte("the same value again and again")})
		}
		if err := client.ProduceSync(ctx, sent...).FirstErr(); err != nil {
			return nil, err
		}
		read, err := f.read(ctx, topic, batch)
		return len(read), err
	}
}

func (f franz) group(topic string, more ...kgo.Opt) func(context.Context) (any, error) {
	produce := func(ctx context.Context, partition int32, value string) error {
		return f.client.ProduceSync(ctx, &kgo.Record{Topic: f.name(topic), Partition: partition, Value: []byte(value)}).FirstErr()
	}
	return func(ctx context.Context) (any, error) {
		join := func(context.Context) (member, error) { return f.join(topic, more...) }
		return groupFacts(ctx, join, produce)
	}
}

type franzMember struct {
	client  *kgo.Client
	reached *progress
	done    chan struct{}
}

func (f franz) join(topic string, more ...kgo.Opt) (member, error) {
	each := &franzMember{reached: newProgress(), done: make(chan struct{})}
	owns := func(is bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			each.reached.own(is, changed[f.name(topic)]...)
		}
	}
	client, err := f.open(append(more, kgo.ConsumerGroup(f.name(topic)), kgo.ConsumeTopics(f.name(topic)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(owns(true)), kgo.OnPartitionsRevoked(owns(false)), kgo.OnPartitionsLost(owns(false)))...)
	if err != nil {
		return nil, err
	}
	each.client = client
	go each.poll()
	return each, nil
}

func (m *franzMember) poll() {
	defer close(m.done)
	for {
		fetches := m.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachRecord(func(record *kgo.Record) { m.reached.saw(record.Partition, record.Offset) })
	}
}

func (m *franzMember) progress() *progress { return m.reached }
func (m *franzMember) commit(ctx context.Context) error {
	return m.client.CommitUncommittedOffsets(ctx)
}
func (m *franzMember) leave() error { m.client.Close(); <-m.done; return nil }

func (f franz) transactions(ctx context.Context) (any, error) {
	client, err := f.open(kgo.TransactionalID(f.name("transactions")))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := client.BeginTransaction(); err != nil {
			return nil, err
		}
		for range 5 {
			value := fmt.Append(nil, map[kgo.TransactionEndTry]string{kgo.TryCommit: "commit", kgo.TryAbort: "abort"}[end])
			if err := client.ProduceSync(ctx, &kgo.Record{Topic: f.name("transactions"), Value: value}).FirstErr(); err != nil {
				return nil, err
			}
		}
		if err := client.EndTransaction(ctx, end); err != nil {
			return nil, err
		}
	}
	committed, err := f.read(ctx, "transactions", 10, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return nil, err
	}
	aborted := 0
	for _, each := range committed {
		if string(each.Value) == "abort" {
			aborted++
		}
	}
	everything, err := f.read(ctx, "transactions", 15)
	return facts{"committed": len(committed), "aborted among them": aborted, "all": len(everything)}, err
}

// transactionalOffsets reads in a group and writes in transactions: the session of franz-go does both.
func (f franz) transactionalOffsets(ctx context.Context) (any, error) {
	group := f.name("transactional-offsets")
	session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(f.servers), kgo.TransactionalID(f.name("pipe")),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(f.name("source")), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets())
	if err != nil {
		return nil, err
	}
	defer session.Close()
	found := facts{}
	if err := f.pipe(ctx, session, kgo.TryAbort); err != nil {
		return nil, err
	}
	if found["abort"], err = f.committed(ctx, group); err != nil {
		return nil, err
	}
	if err := f.pipe(ctx, session, kgo.TryCommit); err != nil {
		return nil, err
	}
	return found, until(ctx, "the offset is known", func() bool {
		found["commit"], err = f.committed(ctx, group)
		return found["commit"] != int64(-1)
	})
}

func (f franz) pipe(ctx context.Context, session *kgo.GroupTransactSession, end kgo.TransactionEndTry) error {
	if err := session.Begin(); err != nil {
		return err
	}
	for read := 0; read < 10; {
		fetches := session.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		read += fetches.NumRecords()
		for _, each := range fetches.Records() {
			session.Produce(ctx, &kgo.Record{Topic: f.name("sink"), Value: each.Value}, nil)
		}
	}
	committed, err := session.End(ctx, end)
	if err == nil && committed != (end == kgo.TryCommit) {
		return fmt.Errorf("committed: %v", committed)
	}
	return err
}

// committed is the offset of a group, or -1.
func (f franz) committed(ctx context.Context, group string) (int64, error) {
	offsets, err := f.admin.FetchOffsets(ctx, group)
	if found, known := offsets.Lookup(f.name("source"), 0); known {
		return found.At, err
	}
	return -1, err
}
