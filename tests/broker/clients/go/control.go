package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// remote controls an embedded broker over HTTP.
type remote struct{ url string }

// send sends a request, and decodes the response into found.
func (r remote) send(ctx context.Context, method, path string, body, found any) error {
	data := []byte{}
	if body != nil {
		data, _ = json.Marshal(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s %s", method, path, response.Status, text)
	}
	if err == nil && found != nil {
		err = json.Unmarshal(text, found)
	}
	return err
}

func (r remote) change(ctx context.Context, kind string, values facts) error {
	values["kind"] = kind
	return r.send(ctx, http.MethodPost, "/changes", values, nil)
}

// controlSession has one feature: the control of the brokers while kafka-go writes to them. The login of the place is the
// URL of the remote control, and the prefix is the topic.
func controlSession(where place) []feature {
	return []feature{{"control", func(ctx context.Context) (any, error) { return control(ctx, where) }}}
}

func control(ctx context.Context, where place) (any, error) {
	r, topic := remote{where.login}, where.prefix
	writer := &kafka.Writer{
		Addr: kafka.TCP(strings.Split(where.servers, ",")...), Topic: topic, RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond,
		WriteBackoffMin: 20 * time.Millisecond, MaxAttempts: 100,
		Transport: &kafka.Transport{MetadataTTL: 100 * time.Millisecond},
	}
	defer writer.Close()
	var fault struct{ Number, Hits int }
	var log struct {
		Requests []struct{ Errors []string }
	}
	var state struct {
		Brokers []struct{ Running bool }
		Topics  map[string][]struct{ Leader int }
	}
	failure := facts{"kind": "Fail", "error": "NOT_ENOUGH_REPLICAS"}
	steps := []func() error{
		func() error {
			return r.change(ctx, "MoveLeader", facts{"topic": topic, "partition": 0, "broker": 0})
		},
		func() error { return r.send(ctx, http.MethodPost, "/requests", nil, nil) },
		func() error {
			wanted := facts{"effect": failure, "api": "Produce", "topic": topic, "times": 2}
			return r.send(ctx, http.MethodPost, "/faults", wanted, &fault)
		},
		func() error { return writer.WriteMessages(ctx, kafka.Message{Value: []byte("one")}) },
		func() error { return r.send(ctx, http.MethodGet, fmt.Sprintf("/faults/%d", fault.Number), nil, &fault) },
		func() error { return r.send(ctx, http.MethodGet, "/requests?api=Produce&topic="+topic, nil, &log) },
		func() error { return r.change(ctx, "KillBroker", facts{"broker": 0}) },
		func() error {
			// The writer does not try again when a connection is refused.
			return until(ctx, "a write after a failure", func() bool {
				return writer.WriteMessages(ctx, kafka.Message{Value: []byte("two")}) == nil
			})
		},
		func() error { return r.send(ctx, http.MethodGet, "/", nil, &state) },
		func() error { return r.change(ctx, "StartBroker", facts{"broker": 0}) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	errors, running := [][]string{}, []bool{}
	for _, each := range log.Requests {
		errors = append(errors, each.Errors)
	}
	for _, each := range state.Brokers {
		running = append(running, each.Running)
	}
	return facts{"hits": fault.Hits, "errors": errors, "leader": state.Topics[topic][0].Leader, "running": running}, nil
}
