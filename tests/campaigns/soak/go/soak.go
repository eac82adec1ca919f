// A client of the soak campaign, written with franz-go: soak SERVERS TOPIC. See ../protocol.py for its lines.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions  = 3
	burst       = 3
	outstanding = 500
	tick        = 50 * time.Millisecond
)

var (
	out     = bufio.NewWriter(os.Stdout)
	outLock sync.Mutex
)

func report(format string, values ...any) {
	outLock.Lock()
	defer outLock.Unlock()
	fmt.Fprintf(out, format+"\n", values...)
}

func options(servers string, more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.RetryTimeout(5 * time.Second),
		kgo.RequestTimeoutOverhead(5 * time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, more...)
}

func write(servers, topic string, draining *atomic.Bool, done chan<- bool) {
	defer close(done)
	client, err := kgo.NewClient(options(servers, kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.RecordDeliveryTimeout(90*time.Second),
		kgo.ProduceRequestTimeout(5*time.Second))...)
	if err != nil {
		report("E writer %v", err)
		return
	}
	var waiting [partitions]atomic.Int64
	next := [partitions]int{}
	pad := strings.Repeat(".", 90)
	for !draining.Load() {
		for partition := range partitions {
			for n := 0; n < burst && waiting[partition].Load() < outstanding; n++ {
				sequence := next[partition]
				next[partition]++
				waiting[partition].Add(1)
				record := &kgo.Record{Topic: topic, Partition: int32(partition), Key: fmt.Append(nil, "k", partition),
					Value: fmt.Append(nil, sequence, " ", pad)}
				client.Produce(context.Background(), record, func(r *kgo.Record, err error) {
					waiting[r.Partition].Add(-1)
					if err != nil {
						report("F %d %d %s", r.Partition, sequence, strings.ReplaceAll(err.Error(), "\n", " "))
					} else {
						report("A %d %d %d %d", time.Now().UnixMilli(), r.Partition, sequence, r.Offset)
					}
				})
			}
		}
		time.Sleep(tick)
	}
	limited, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	_ = client.Flush(limited)
	report("D")
}

func read(servers, topic string, ending context.Context) {
	client, err := kgo.NewClient(options(servers, kgo.ConsumerGroup("soak-"+topic), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(time.Second), kgo.FetchMaxWait(100*time.Millisecond))...)
	if err != nil {
		report("E reader %v", err)
		return
	}
	defer client.CloseAllowingRebalance()
	committed := time.Now()
	for ending.Err() == nil {
		limited, cancel := context.WithTimeout(ending, 500*time.Millisecond)
		fetches := client.PollFetches(limited)
		cancel()
		fetches.EachRecord(func(r *kgo.Record) {
			sequence, _, _ := strings.Cut(string(r.Value), " ")
			number, _ := strconv.Atoi(sequence)
			report("R %d %d %d %d", time.Now().UnixMilli(), r.Partition, r.Offset, number)
		})
		if time.Since(committed) > time.Second {
			commit(client, topic, ending)
			committed = time.Now()
		}
		client.AllowRebalance()
	}
}

func commit(client *kgo.Client, topic string, ending context.Context) {
	limited, cancel := context.WithTimeout(ending, 5*time.Second)
	defer cancel()
	offsets := client.UncommittedOffsets()
	if client.CommitUncommittedOffsets(limited) != nil {
		return
	}
	committed := client.CommittedOffsets()
	for partition, offset := range offsets[topic] {
		if committed[topic][partition].Offset >= offset.Offset {
			report("C %d %d", partition, offset.Offset)
		}
	}
}

func main() {
	servers, topic := os.Args[1], os.Args[2]
	ending, end := context.WithCancel(context.Background())
	var draining atomic.Bool
	written := make(chan bool)
	var reader sync.WaitGroup
	reader.Add(1)
	go write(servers, topic, &draining, written)
	go func() { defer reader.Done(); read(servers, topic, ending) }()
	go func() {
		for {
			time.Sleep(20 * time.Millisecond)
			outLock.Lock()
			out.Flush()
			outLock.Unlock()
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		draining.Store(true)
	}
	if !draining.Load() {
		os.Exit(1) // the campaign is gone
	}
	<-written
	end()
	reader.Wait()
	outLock.Lock()
	out.Flush()
	outLock.Unlock()
}
