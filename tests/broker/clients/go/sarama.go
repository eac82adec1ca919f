package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

type ibm struct {
	place
	admin sarama.ClusterAdmin
}

func saramaSession(where place) []feature {
	admin, err := sarama.NewClusterAdmin([]string{where.servers}, saramaConfig())
	if err != nil {
		panic(err)
	}
	s := ibm{where, admin}
	return []feature{
		{"records", s.records},
		{"gzip", s.codec("gzip", sarama.CompressionGZIP)},
		{"snappy", s.codec("snappy", sarama.CompressionSnappy)},
		{"lz4", s.codec("lz4", sarama.CompressionLZ4)},
		{"zstd", s.codec("zstd", sarama.CompressionZSTD)},
		{"idempotence", s.codec("idempotence", sarama.CompressionNone)},
		{"group", s.group},
		{"transactions", s.transactions},
		{"transactional-offsets", s.transactionalOffsets},
		{"times", s.times},
		{"topics", s.topics},
		{"groups", s.groups},
		{"delete-records", s.deleteRecords},
		{"acls", s.acls},
		{"logins", s.logins},
	}
}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	return config
}

// produce sends messages with one producer.
func (s ibm) produce(config *sarama.Config, messages ...*sarama.ProducerMessage) error {
	producer, err := sarama.NewSyncProducer([]string{s.servers}, config)
	if err != nil {
		return err
	}
	return errors.Join(producer.SendMessages(messages), producer.Close())
}

func (s ibm) messages(topic, value string, count int) (found []*sarama.ProducerMessage) {
	for range count {
		found = append(found, &sarama.ProducerMessage{Topic: s.name(topic), Value: sarama.StringEncoder(value)})
	}
	return found
}

func (s ibm) read(ctx context.Context, topic string, count int, level sarama.IsolationLevel) ([]*sarama.ConsumerMessage, error) {
	config := saramaConfig()
	config.Consumer.IsolationLevel = level
	consumer, err := sarama.NewConsumer([]string{s.servers}, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(s.name(topic), 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	var found []*sarama.ConsumerMessage
	for len(found) < count {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("only %d of %d messages came", len(found), count)
		case message := <-partition.Messages():
			found = append(found, message)
		}
	}
	return found, nil
}

func (s ibm) records(ctx context.Context) (any, error) {
	var sent []*sarama.ProducerMessage
	for n := range 3 {
		sent = append(sent, &sarama.ProducerMessage{
			Topic: s.name("records"), Key: sarama.StringEncoder(fmt.Sprint("k", n)), Value: sarama.StringEncoder(fmt.Sprint("v", n)),
			Headers:   []sarama.RecordHeader{{Key: []byte("h"), Value: fmt.Append(nil, "h", n)}},
			Timestamp: time.UnixMilli(startTime + int64(n)),
		})
	}
	if err := s.produce(saramaConfig(), sent...); err != nil {
		return nil, err
	}
	read, err := s.read(ctx, "records", 3, sarama.ReadUncommitted)
	found := []record{}
	for _, each := range read {
		found = append(found, record{each.Offset, string(each.Key), string(each.Value),
			string(each.Headers[0].Value), each.Timestamp.UnixMilli()})
	}
	return found, err
}

func (s ibm) codec(topic string, codec sarama.CompressionCodec) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		config := saramaConfig()
		config.Producer.Compression = codec
		config.Producer.Flush.Messages = batch
		if topic == "idempotence" {
			config.Producer.Idempotent = true
			config.Net.MaxOpenRequests = 1
		}
		if err := s.produce(config, s.messages(topic, "the same value again and again", batch)...); err != nil {
			return nil, err
		}
		read, err := s.read(ctx, topic, batch, sarama.ReadUncommitted)
		return len(read), err
	}
}

func (s ibm) group(ctx context.Context) (any, error) {
	producer, err := sarama.NewSyncProducer([]string{s.servers}, saramaConfig())
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	produce := func(_ context.Context, partition int32, value string) error {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic: s.name("group"), Partition: partition, Value: sarama.StringEncoder(value),
		})
		return err
	}
	return groupFacts(ctx, s.join, produce)
}

// saramaMember is the handler of its consumer, too.
type saramaMember struct {
	topic   string
	group   sarama.ConsumerGroup
	reached *progress
	session chan sarama.ConsumerGroupSession
	stop    context.CancelFunc
	done    chan struct{}
}

func (s ibm) join(context.Context) (member, error) {
	group, err := sarama.NewConsumerGroup([]string{s.servers}, s.name("group"), saramaConfig())
	if err != nil {
		return nil, err
	}
	reading, stop := context.WithCancel(context.Background())
	each := &saramaMember{s.name("group"), group, newProgress(), make(chan sarama.ConsumerGroupSession, 1), stop, make(chan struct{})}
	go each.run(reading)
	return each, nil
}

func (m *saramaMember) run(ctx context.Context) {
	defer close(m.done)
	for ctx.Err() == nil {
		if m.group.Consume(ctx, []string{m.topic}, m) != nil {
			return
		}
	}
}

// Setup learns what the member has from now on.
func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	m.reached.ownOnly(session.Claims()[m.topic])
	select {
	case <-m.session:
	default:
	}
	m.session <- session
	return nil
}

// Cleanup has nothing to do.
func (m *saramaMember) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim reads a partition until the member loses it.
func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		m.reached.saw(message.Partition, message.Offset)
	}
	return nil
}

func (m *saramaMember) progress() *progress { return m.reached }

func (m *saramaMember) commit(context.Context) error {
	session := <-m.session
	session.Commit()
	return nil
}

func (m *saramaMember) leave() error { m.stop(); <-m.done; return m.group.Close() }

func (s ibm) transactional(id string) (sarama.SyncProducer, error) {
	config := saramaConfig()
	config.Producer.Idempotent = true
	config.Producer.Transaction.ID = s.name(id)
	config.Net.MaxOpenRequests = 1
	return sarama.NewSyncProducer([]string{s.servers}, config)
}

func (s ibm) transactions(ctx context.Context) (any, error) {
	producer, err := s.transactional("transactions")
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	for _, value := range []string{"commit", "abort", "commit"} {
		if err := producer.BeginTxn(); err != nil {
			return nil, err
		}
		if err := producer.SendMessages(s.messages("transactions", value, 5)); err != nil {
			return nil, err
		}
		end := map[string]func() error{"commit": producer.CommitTxn, "abort": producer.AbortTxn}[value]
		if err := end(); err != nil {
			return nil, err
		}
	}
	committed, err := s.read(ctx, "transactions", 10, sarama.ReadCommitted)
	if err != nil {
		return nil, err
	}
	aborted := 0
	for _, each := range committed {
		if string(each.Value) == "abort" {
			aborted++
		}
	}
	everything, err := s.read(ctx, "transactions", 15, sarama.ReadUncommitted)
	return facts{"committed": len(committed), "aborted among them": aborted, "all": len(everything)}, err
}

func (s ibm) transactionalOffsets(ctx context.Context) (any, error) {
	producer, err := s.transactional("pipe")
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	found := facts{}
	if err := s.pipe(producer, producer.AbortTxn); err != nil {
		return nil, err
	}
	if found["abort"], err = s.committed(); err != nil {
		return nil, err
	}
	if err := s.pipe(producer, producer.CommitTxn); err != nil {
		return nil, err
	}
	return found, until(ctx, "the offset is known", func() bool {
		found["commit"], err = s.committed()
		return found["commit"] != int64(-1)
	})
}

func (s ibm) pipe(producer sarama.SyncProducer, end func() error) error {
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	if err := producer.SendMessages(s.messages("sink", "value", 10)); err != nil {
		return err
	}
	offsets := []*sarama.PartitionOffsetMetadata{{Partition: 0, Offset: 10, LeaderEpoch: -1}}
	asked := map[string][]*sarama.PartitionOffsetMetadata{s.name("source"): offsets}
	if err := producer.AddOffsetsToTxn(asked, s.name("transactional-offsets")); err != nil {
		return err
	}
	return end()
}

// committed is the offset of a group, or -1.
func (s ibm) committed() (int64, error) {
	asked := map[string][]int32{s.name("source"): {0}}
	known, err := s.admin.ListConsumerGroupOffsets(s.name("transactional-offsets"), asked)
	if err != nil {
		return 0, err
	}
	return known.GetBlock(s.name("source"), 0).Offset, nil
}
