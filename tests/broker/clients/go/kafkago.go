package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

type segment struct {
	place
	client *kafka.Client
}

func segmentSession(where place) []feature {
	// A request for metadata may take as long as metadata is good for.
	transport := &kafka.Transport{MetadataTTL: 5 * time.Second}
	s := segment{where, &kafka.Client{Addr: kafka.TCP(where.servers), Transport: transport, Timeout: patience}}
	return []feature{
		{"records", s.records},
		{"gzip", s.codec("gzip", kafka.Gzip)},
		{"snappy", s.codec("snappy", kafka.Snappy)},
		{"lz4", s.codec("lz4", kafka.Lz4)},
		{"zstd", s.codec("zstd", kafka.Zstd)},
		{"group", s.group},
		{"times", s.times},
		{"topics", s.topics},
		{"groups", s.groups},
		{"acls", s.acls},
		{"logins", s.logins},
	}
}

// failed is the error of a request, or else one of its answer: without an answer there is none to look at.
func failed(err error, answered func() error) error {
	if err != nil {
		return err
	}
	return answered()
}

// toPartition is a balancer: a message names its partition.
func toPartition(message kafka.Message, _ ...int) int {
	number, _ := message.WriterData.(int32)
	return int(number)
}

func (s segment) writer(topic string, codec kafka.Compression) *kafka.Writer {
	return &kafka.Writer{
		Addr: kafka.TCP(s.servers), Topic: s.name(topic), Compression: codec, RequiredAcks: kafka.RequireAll,
		Balancer: kafka.BalancerFunc(toPartition), BatchTimeout: 5 * time.Millisecond,
	}
}

func (s segment) read(ctx context.Context, topic string, partition int, offset int64, see func(kafka.Message) bool) error {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{s.servers}, Topic: s.name(topic), Partition: partition, MaxWait: 200 * time.Millisecond,
	})
	defer reader.Close()
	if err := reader.SetOffset(offset); err != nil {
		return err
	}
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return err
		}
		if !see(message) {
			return nil
		}
	}
}

func (s segment) records(ctx context.Context) (any, error) {
	writer := s.writer("records", 0)
	var sent []kafka.Message
	for n := range 3 {
		sent = append(sent, kafka.Message{
			Key: fmt.Append(nil, "k", n), Value: fmt.Append(nil, "v", n),
			Headers: []kafka.Header{{Key: "h", Value: fmt.Append(nil, "h", n)}}, Time: time.UnixMilli(startTime + int64(n)),
		})
	}
	if err := errors.Join(writer.WriteMessages(ctx, sent...), writer.Close()); err != nil {
		return nil, err
	}
	found := []record{}
	err := s.read(ctx, "records", 0, kafka.FirstOffset, func(each kafka.Message) bool {
		found = append(found, record{each.Offset, string(each.Key), string(each.Value),
			string(each.Headers[0].Value), each.Time.UnixMilli()})
		return len(found) < 3
	})
	return found, err
}

func (s segment) codec(topic string, codec kafka.Compression) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		writer := s.writer(topic, codec)
		var sent []kafka.Message
		for range batch {
			sent = append(sent, kafka.Message{Value: []byte("the same value again and again")})
		}
		if err := errors.Join(writer.WriteMessages(ctx, sent...), writer.Close()); err != nil {
			return nil, err
		}
		count := 0
		err := s.read(ctx, topic, 0, kafka.FirstOffset, func(kafka.Message) bool { count++; return count < batch })
		return count, err
	}
}

func (s segment) group(ctx context.Context) (any, error) {
	writer := s.writer("group", 0)
	defer writer.Close()
	produce := func(ctx context.Context, partition int32, value string) error {
		return writer.WriteMessages(ctx, kafka.Message{Value: []byte(value), WriterData: partition})
	}
	return groupFacts(ctx, s.join, produce)
}

// segmentMember works one generation after the other.
type segmentMember struct {
	segment
	group   *kafka.ConsumerGroup
	reached *progress
	latest  chan *kafka.Generation
	done    chan struct{}
}

func (s segment) join(context.Context) (member, error) {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: s.name("group"), Brokers: []string{s.servers}, Topics: []string{s.name("group")}, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: 200 * time.Millisecond, RebalanceTimeout: 10 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	each := &segmentMember{s, group, newProgress(), make(chan *kafka.Generation, 1), make(chan struct{})}
	go each.run()
	return each, nil
}

func (m *segmentMember) run() {
	defer close(m.done)
	for {
		generation, err := m.group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil {
			continue
		}
		var owned []int32
		for _, each := range generation.Assignments[m.name("group")] {
			owned = append(owned, int32(each.ID))
			generation.Start(func(ctx context.Context) {
				_ = m.read(ctx, "group", each.ID, each.Offset, func(message kafka.Message) bool {
					m.reached.saw(int32(message.Partition), message.Offset)
					return true
				})
			})
		}
		m.reached.ownOnly(owned)
		select {
		case <-m.latest:
		default:
		}
		m.latest <- generation
	}
}

func (m *segmentMember) progress() *progress { return m.reached }

func (m *segmentMember) commit(context.Context) error {
	generation := <-m.latest
	ends := map[int]int64{}
	m.reached.mutex.Lock()
	for each := range m.reached.read {
		ends[int(each.partition)] = max(ends[int(each.partition)], each.offset+1)
	}
	m.reached.mutex.Unlock()
	return generation.CommitOffsets(map[string]map[int]int64{m.name("group"): ends})
}

func (m *segmentMember) leave() error { err := m.group.Close(); <-m.done; return err }

func (s segment) times(ctx context.Context) (any, error) {
	asked := []kafka.OffsetRequest{{Partition: 0, Timestamp: startTime + 1}}
	found, err := s.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{s.name("records"): asked}})
	if err != nil {
		return nil, err
	}
	at := found.Topics[s.name("records")][0]
	for offset := range at.Offsets {
		return offset, at.Error
	}
	return nil, at.Error
}

func (s segment) topics(ctx context.Context) (any, error) {
	topic := s.name("admin")
	config := kafka.TopicConfig{
		Topic: topic, NumPartitions: 2, ReplicationFactor: 1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "3600000"}},
	}
	request := &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}}
	created, err := s.client.CreateTopics(ctx, request)
	if err := failed(err, func() error { return created.Errors[topic] }); err != nil {
		return nil, err
	}
	again, err := s.client.CreateTopics(ctx, request)
	if err != nil {
		return nil, err
	}
	found := facts{"again": errors.Is(again.Errors[topic], kafka.TopicAlreadyExists)}
	if err := until(ctx, "the topic is known", func() bool { return s.count(ctx, topic) == 2 }); err != nil {
		return nil, err
	}
	if found["retention"], err = s.retention(ctx, topic); err != nil {
		return nil, err
	}
	if err := s.alter(ctx, topic); err != nil {
		return nil, err
	}
	more := &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: 4}}}
	grown, err := s.client.CreatePartitions(ctx, more)
	if err := failed(err, func() error { return grown.Errors[topic] }); err != nil {
		return nil, err
	}
	if err := until(ctx, "there are more partitions", func() bool { return s.count(ctx, topic) == 4 }); err != nil {
		return nil, err
	}
	deleted, err := s.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err := failed(err, func() error { return deleted.Errors[topic] }); err != nil {
		return nil, err
	}
	return found, until(ctx, "the topic is gone", func() bool { return s.count(ctx, topic) == 0 })
}

func (s segment) alter(ctx context.Context, topic string) error {
	change := kafka.IncrementalAlterConfigsRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{
			{Name: "retention.ms", Value: "7200000", ConfigOperation: kafka.ConfigOperationSet},
		},
	}
	request := &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{change}}
	altered, err := s.client.IncrementalAlterConfigs(ctx, request)
	if err := failed(err, func() error { return altered.Resources[0].Error }); err != nil {
		return err
	}
	return until(ctx, "the setting is known", func() bool {
		value, err := s.retention(ctx, topic)
		return err == nil && value == "7200000"
	})
}

func (s segment) count(ctx context.Context, topic string) int {
	found, err := s.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return -1
	}
	return len(found.Topics[0].Partitions)
}

func (s segment) retention(ctx context.Context, topic string) (string, error) {
	asked := kafka.DescribeConfigRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"},
	}
	found, err := s.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{asked}})
	if err != nil {
		return "", err
	}
	for _, each := range found.Resources[0].ConfigEntries {
		return each.ConfigValue, nil
	}
	return "", found.Resources[0].Error
}

func (s segment) groups(ctx context.Context) (any, error) {
	group := s.name("group")
	was, err := s.listed(ctx, group)
	if err != nil {
		return nil, err
	}
	described, err := s.client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return nil, err
	}
	asked := map[string][]int{s.name("group"): {0, 1, 2, 3}}
	offsets, err := s.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: asked})
	if err != nil {
		return nil, err
	}
	sum := int64(0)
	for _, each := range offsets.Topics[s.name("group")] {
		sum += each.CommittedOffset
	}
	deleted, err := s.client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err := failed(err, func() error { return deleted.Errors[group] }); err != nil {
		return nil, err
	}
	is, err := s.listed(ctx, group)
	return facts{"listed": was, "state": described.Groups[0].GroupState, "offsets": sum, "deleted": !is}, err
}

func (s segment) listed(ctx context.Context, group string) (bool, error) {
	found, err := s.client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return false, err
	}
	for _, each := range found.Groups {
		if each.GroupID == group {
			return true, nil
		}
	}
	return false, found.Error
}

func (s segment) acls(ctx context.Context) (any, error) {
	topic, principal := s.name("acl"), "User:"+s.prefix
	rule := kafka.ACLEntry{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ResourcePatternType: kafka.PatternTypePrefixed,
		Principal: principal, Host: "*", Operation: kafka.ACLOperationTypeRead, PermissionType: kafka.ACLPermissionTypeAllow,
	}
	created, err := s.client.CreateACLs(ctx, &kafka.CreateACLsRequest{ACLs: []kafka.ACLEntry{rule}})
	if err := failed(err, func() error { return created.Errors[0] }); err != nil {
		return nil, err
	}
	filter := kafka.ACLFilter{
		ResourceTypeFilter: rule.ResourceType, ResourceNameFilter: topic, ResourcePatternTypeFilter: rule.ResourcePatternType,
		PrincipalFilter: principal, HostFilter: "*", Operation: rule.Operation, PermissionType: rule.PermissionType,
	}
	count := func() int {
		found, err := s.client.DescribeACLs(ctx, &kafka.DescribeACLsRequest{Filter: filter})
		if err != nil || len(found.Resources) > 1 {
			return -1
		}
		for _, each := range found.Resources {
			return len(each.ACLs)
		}
		return 0
	}
	if err := until(ctx, "the rule is known", func() bool { return count() == 1 }); err != nil {
		return nil, err
	}
	old := kafka.DeleteACLsFilter(filter)
	deleted, err := s.client.DeleteACLs(ctx, &kafka.DeleteACLsRequest{Filters: []kafka.DeleteACLsFilter{old}})
	if err != nil {
		return nil, err
	}
	return len(deleted.Results[0].MatchingACLs), until(ctx, "the rule is gone", func() bool { return count() == 0 })
}

func (s segment) logins(ctx context.Context) (any, error) {
	login := func(mechanism sasl.Mechanism) error {
		dialer := &kafka.Dialer{SASLMechanism: mechanism, Timeout: patience}
		connection, err := dialer.DialContext(ctx, "tcp", s.login)
		if err != nil {
			return err
		}
		defer connection.Close()
		_, err = connection.Brokers()
		return err
	}
	mechanisms := func(secret string) (map[string]sasl.Mechanism, error) {
		short, err := scram.Mechanism(scram.SHA256, user, secret)
		if err != nil {
			return nil, err
		}
		long, err := scram.Mechanism(scram.SHA512, user, secret)
		return map[string]sasl.Mechanism{
			"PLAIN": plain.Mechanism{Username: user, Password: secret}, "SCRAM-SHA-256": short, "SCRAM-SHA-512": long,
		}, err
	}
	right, err := mechanisms(password)
	if err != nil {
		return nil, err
	}
	wrong, err := mechanisms("wrong")
	if err != nil {
		return nil, err
	}
	found := facts{}
	for name := range right {
		if err := login(right[name]); err != nil {
			return nil, err
		}
		found[name] = errors.Is(login(wrong[name]), kafka.SASLAuthenticationFailed)
	}
	return found, nil
}
