package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func (f franz) times(ctx context.Context) (any, error) {
	found, err := f.admin.ListOffsetsAfterMilli(ctx, startTime+1, f.name("records"))
	if err != nil {
		return nil, err
	}
	at, _ := found.Lookup(f.name("records"), 0)
	return at.Offset, at.Err
}

func (f franz) topics(ctx context.Context) (any, error) {
	topic, retention := f.name("admin"), "3600000"
	if _, err := f.admin.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": &retention}, topic); err != nil {
		return nil, err
	}
	_, again := f.admin.CreateTopic(ctx, 2, 1, nil, topic)
	found := facts{"again": errors.Is(again, kerr.TopicAlreadyExists)}
	if err := until(ctx, "the topic is known", func() bool { return f.count(ctx, topic) == 2 }); err != nil {
		return nil, err
	}
	var err error
	if found["retention"], err = f.retention(ctx, topic); err != nil {
		return nil, err
	}
	longer := "7200000"
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &longer}}
	if _, err := f.admin.AlterTopicConfigs(ctx, change, topic); err != nil {
		return nil, err
	}
	altered := func() bool { value, err := f.retention(ctx, topic); return err == nil && value == longer }
	if err := until(ctx, "the setting is known", altered); err != nil {
		return nil, err
	}
	if _, err := f.admin.UpdatePartitions(ctx, 4, topic); err != nil {
		return nil, err
	}
	if err := until(ctx, "there are more partitions", func() bool { return f.count(ctx, topic) == 4 }); err != nil {
		return nil, err
	}
	if _, err := f.admin.DeleteTopic(ctx, topic); err != nil {
		return nil, err
	}
	return found, until(ctx, "the topic is gone", func() bool { return f.count(ctx, topic) == 0 })
}

func (f franz) count(ctx context.Context, topic string) int {
	found, err := f.admin.ListTopics(ctx, topic)
	if err != nil {
		return -1
	}
	return len(found[topic].Partitions)
}

func (f franz) retention(ctx context.Context, topic string) (string, error) {
	described, err := f.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return "", err
	}
	for _, each := range described[0].Configs {
		if each.Key == "retention.ms" {
			return each.MaybeValue(), nil
		}
	}
	return "", described[0].Err
}

func (f franz) groups(ctx context.Context) (any, error) {
	group := f.name("group")
	listed, err := f.admin.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	described, err := f.admin.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	offsets, err := f.admin.FetchOffsets(ctx, group)
	if err != nil {
		return nil, err
	}
	sum := int64(0)
	offsets.Each(func(each kadm.OffsetResponse) { sum += each.At })
	deleted, err := f.admin.DeleteGroup(ctx, group)
	if err != nil {
		return nil, err
	}
	left, err := f.admin.ListGroups(ctx)
	_, was := listed[group]
	_, is := left[group]
	return facts{"listed": was, "state": described[group].State, "offsets": sum, "deleted": !is && deleted.Err == nil}, err
}

func (f franz) deleteRecords(ctx context.Context) (any, error) {
	for range 10 {
		if err := f.client.ProduceSync(ctx, &kgo.Record{Topic: f.name("delete"), Value: []byte("v")}).FirstErr(); err != nil {
			return nil, err
		}
	}
	before := kadm.Offsets{}
	before.AddOffset(f.name("delete"), 0, 4, -1)
	if _, err := f.admin.DeleteRecords(ctx, before); err != nil {
		return nil, err
	}
	start, err := f.admin.ListStartOffsets(ctx, f.name("delete"))
	at, _ := start.Lookup(f.name("delete"), 0)
	return at.Offset, err
}

func (f franz) acls(ctx context.Context) (any, error) {
	rule := kadm.NewACLs().Topics(f.name("acl")).ResourcePatternType(kadm.ACLPatternPrefixed).
		Operations(kadm.OpRead).Allow("User:" + f.prefix).AllowHosts("*")
	if _, err := f.admin.CreateACLs(ctx, rule); err != nil {
		return nil, err
	}
	count := func() int {
		found, err := f.admin.DescribeACLs(ctx, rule)
		if err != nil {
			return -1
		}
		return len(found[0].Described)
	}
	if err := until(ctx, "the rule is known", func() bool { return count() == 1 }); err != nil {
		return nil, err
	}
	deleted, err := f.admin.DeleteACLs(ctx, rule)
	if err != nil {
		return nil, err
	}
	return len(deleted[0].Deleted), until(ctx, "the rule is gone", func() bool { return count() == 0 })
}

func (f franz) logins(ctx context.Context) (any, error) {
	secret := func(word string) map[string]sasl.Mechanism {
		return map[string]sasl.Mechanism{
			"PLAIN":         plain.Auth{User: user, Pass: word}.AsMechanism(),
			"SCRAM-SHA-256": scram.Auth{User: user, Pass: word}.AsSha256Mechanism(),
			"SCRAM-SHA-512": scram.Auth{User: user, Pass: word}.AsSha512Mechanism(),
		}
	}
	login := func(mechanism sasl.Mechanism) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(f.login), kgo.SASL(mechanism))
		if err != nil {
			return err
		}
		defer client.Close()
		return client.Ping(ctx)
	}
	found := facts{}
	for name, mechanism := range secret(password) {
		if err := login(mechanism); err != nil {
			return nil, err
		}
		found[name] = errors.Is(login(secret("wrong")[name]), kerr.SaslAuthenticationFailed)
	}
	return found, nil
}
