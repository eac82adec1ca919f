package main

import (
	"context"
	"errors"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

func (s ibm) times(context.Context) (any, error) {
	asked := map[string]map[int32]int64{s.name("records"): {0: startTime + 1}}
	found, err := s.admin.ListOffsets(asked, nil)
	if err != nil {
		return nil, err
	}
	return found[s.name("records")][0].Offset, nil
}

func (s ibm) topics(ctx context.Context) (any, error) {
	topic, retention := s.name("admin"), "3600000"
	detail := &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &retention}}
	if err := s.admin.CreateTopic(topic, detail, false); err != nil {
		return nil, err
	}
	found := facts{"again": errors.Is(s.admin.CreateTopic(topic, detail, false), sarama.ErrTopicAlreadyExists)}
	if err := until(ctx, "the topic is known", func() bool { return s.count(topic) == 2 }); err != nil {
		return nil, err
	}
	var err error
	if found["retention"], err = s.retention(topic); err != nil {
		return nil, err
	}
	longer := "7200000"
	change := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &longer}}
	if err := s.admin.IncrementalAlterConfig(sarama.TopicResource, topic, change, false); err != nil {
		return nil, err
	}
	altered := func() bool { value, err := s.retention(topic); return err == nil && value == longer }
	if err := until(ctx, "the setting is known", altered); err != nil {
		return nil, err
	}
	if err := s.admin.CreatePartitions(topic, 4, nil, false); err != nil {
		return nil, err
	}
	if err := until(ctx, "there are more partitions", func() bool { return s.count(topic) == 4 }); err != nil {
		return nil, err
	}
	if err := s.admin.DeleteTopic(topic); err != nil {
		return nil, err
	}
	return found, until(ctx, "the topic is gone", func() bool { return s.count(topic) == 0 })
}

func (s ibm) count(topic string) int {
	found, err := s.admin.DescribeTopics([]string{topic})
	if err != nil {
		return -1
	}
	return len(found[0].Partitions)
}

func (s ibm) retention(topic string) (string, error) {
	entries, err := s.admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
	for _, each := range entries {
		if each.Name == "retention.ms" {
			return each.Value, nil
		}
	}
	return "", err
}

func (s ibm) groups(context.Context) (any, error) {
	group := s.name("group")
	listed, err := s.admin.ListConsumerGroups()
	if err != nil {
		return nil, err
	}
	described, err := s.admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return nil, err
	}
	offsets, err := s.admin.ListConsumerGroupOffsets(group, nil)
	if err != nil {
		return nil, err
	}
	sum := int64(0)
	for _, each := range offsets.Blocks[s.name("group")] {
		sum += each.Offset
	}
	if err := s.admin.DeleteConsumerGroup(group); err != nil {
		return nil, err
	}
	left, err := s.admin.ListConsumerGroups()
	_, was := listed[group]
	_, is := left[group]
	return facts{"listed": was, "state": described[0].State, "offsets": sum, "deleted": !is}, err
}

func (s ibm) deleteRecords(context.Context) (any, error) {
	if err := s.produce(saramaConfig(), s.messages("delete", "v", 10)...); err != nil {
		return nil, err
	}
	if err := s.admin.DeleteRecords(s.name("delete"), map[int32]int64{0: 4}); err != nil {
		return nil, err
	}
	found, err := s.admin.ListOffsets(map[string]map[int32]int64{s.name("delete"): {0: sarama.OffsetOldest}}, nil)
	if err != nil {
		return nil, err
	}
	return found[s.name("delete")][0].Offset, nil
}

func (s ibm) acls(ctx context.Context) (any, error) {
	topic, principal, host := s.name("acl"), "User:"+s.prefix, "*"
	resource := sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: topic, ResourcePatternType: sarama.AclPatternPrefixed}
	rule := sarama.Acl{Principal: principal, Host: host, Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow}
	if err := s.admin.CreateACL(resource, rule); err != nil {
		return nil, err
	}
	filter := sarama.AclFilter{
		ResourceType: sarama.AclResourceTopic, ResourceName: &topic, ResourcePatternTypeFilter: sarama.AclPatternPrefixed,
		Principal: &principal, Host: &host, Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow,
	}
	count := func() int {
		found, err := s.admin.ListAcls(filter)
		if err != nil || len(found) > 1 {
			return -1
		}
		for _, each := range found {
			return len(each.Acls)
		}
		return 0
	}
	if err := until(ctx, "the rule is known", func() bool { return count() == 1 }); err != nil {
		return nil, err
	}
	deleted, err := s.admin.DeleteACL(filter, false)
	if err != nil {
		return nil, err
	}
	return len(deleted), until(ctx, "the rule is gone", func() bool { return count() == 0 })
}

// conversation is SCRAM as sarama wants it.
type conversation struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

// Begin starts a login.
func (c *conversation) Begin(user, secret, authorization string) error {
	client, err := c.hash.NewClient(user, secret, authorization)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

func (s ibm) logins(context.Context) (any, error) {
	hashes := map[string]scram.HashGeneratorFcn{
		sarama.SASLTypePlaintext: nil, sarama.SASLTypeSCRAMSHA256: scram.SHA256, sarama.SASLTypeSCRAMSHA512: scram.SHA512,
	}
	login := func(mechanism, secret string) error {
		config := saramaConfig()
		config.Net.SASL.Enable = true
		config.Net.SASL.Mechanism = sarama.SASLMechanism(mechanism)
		config.Net.SASL.User, config.Net.SASL.Password = user, secret
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{hash: hashes[mechanism]} }
		config.Metadata.Retry.Max = 0
		client, err := sarama.NewClient([]string{s.login}, config)
		if err != nil {
			return err
		}
		return client.Close()
	}
	found := facts{}
	for mechanism := range hashes {
		if err := login(mechanism, password); err != nil {
			return nil, err
		}
		found[mechanism] = errors.Is(login(mechanism, "wrong"), sarama.ErrSASLAuthenticationFailed)
	}
	return found, nil
}
