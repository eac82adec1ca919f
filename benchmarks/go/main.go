// Decodes and encodes messages with franz-go's kmsg, for benchmarks/languages.py, which describes what it is asked.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const swept = 64 << 20

// message is what requests, responses and values have in common.
type message interface {
	AppendTo([]byte) []byte
	ReadFrom([]byte) error
}

type versioned interface {
	message
	SetVersion(int16)
}

var makers = map[string]func() message{
	"ApiVersionsResponse":            func() message { return kmsg.NewPtrApiVersionsResponse() },
	"ConsumerGroupHeartbeatResponse": func() message { return kmsg.NewPtrConsumerGroupHeartbeatResponse() },
	"FetchResponse":                  func() message { return kmsg.NewPtrFetchResponse() },
	"HeartbeatResponse":              func() message { return kmsg.NewPtrHeartbeatResponse() },
	"JoinGroupResponse":              func() message { return kmsg.NewPtrJoinGroupResponse() },
	"MetadataResponse":               func() message { return kmsg.NewPtrMetadataResponse() },
	"OffsetCommitValue":              func() message { value := kmsg.NewOffsetCommitValue(); return &value },
	"OffsetFetchResponse":            func() message { return kmsg.NewPtrOffsetFetchResponse() },
	"ProduceRequest":                 func() message { return kmsg.NewPtrProduceRequest() },
}

// codec is one message at one version, with its bytes.
type codec struct {
	make    func() message
	version int16
	data    []byte
	decoded message
}

func (c *codec) decode() message {
	made := c.make()
	if m, ok := made.(versioned); ok {
		m.SetVersion(c.version)
	}
	if err := made.ReadFrom(c.data); err != nil {
		panic(err)
	}
	return made
}

func (c *codec) encode() []byte {
	return c.decoded.AppendTo(nil)
}

// load returns the codec of a file MESSAGE.VERSION, or nil for a message that kmsg does not have.
func load(path string) *codec {
	name, number, _ := strings.Cut(filepath.Base(path), ".")
	version, err := strconv.ParseInt(number, 10, 16)
	if err != nil {
		panic(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	make, known := makers[name]
	if !known {
		return nil
	}
	if _, ok := make().(versioned); !ok { // kmsg reads the version of a value in front of it
		data = append(binary.BigEndian.AppendUint16(nil, uint16(version)), data...)
	}
	c := &codec{make, int16(version), data, nil}
	c.decoded = c.decode()
	if !bytes.Equal(c.encode(), data) {
		panic(path + ": kmsg writes other bytes")
	}
	return c
}

var (
	sinkMessage message
	sinkBytes   []byte
	sinkNumber  int
)

func sweep(other []byte) {
	for place := 0; place < len(other); place += 64 {
		sinkNumber += int(other[place])
	}
}

func (c *codec) timed(direction string, calls int) int64 {
	start := time.Now()
	if direction == "decode" {
		for i := 0; i < calls; i++ {
			sinkMessage = c.decode()
		}
	} else {
		for i := 0; i < calls; i++ {
			sinkBytes = c.encode()
		}
	}
	return time.Since(start).Nanoseconds()
}

func main() {
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "*"))
	if err != nil {
		panic(err)
	}
	codecs, names := map[string]*codec{}, []string{}
	for _, path := range paths {
		if c := load(path); c != nil {
			codecs[filepath.Base(path)] = c
			names = append(names, filepath.Base(path))
		}
	}
	fmt.Println(strings.Join(names, " "))
	other := bytes.Repeat([]byte{1}, swept)
	asked := bufio.NewScanner(os.Stdin)
	for asked.Scan() {
		var caches, direction, name string
		var calls int
		if _, err := fmt.Sscan(asked.Text(), &caches, &direction, &name, &calls); err != nil {
			panic(err)
		}
		if caches == "cold" {
			sweep(other)
		}
		fmt.Println(codecs[name].timed(direction, calls))
	}
}
