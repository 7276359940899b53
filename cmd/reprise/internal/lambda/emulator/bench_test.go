package emulator_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// BenchmarkWarmInvoke is what a function that does nothing costs once its process
// runs: over the Invoke API, and called directly as event source mappings do. The
// aim is 2 ms over the function's own time.
func BenchmarkWarmInvoke(b *testing.B) {
	l, err := emulator.New(emulator.Config{Functions: []emulator.Function{self(b, "f")}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close(context.Background())
	payload := []byte(`{"do":"echo"}`)

	b.Run("http", func(b *testing.B) {
		target := serve(b, l) + "/2015-03-31/functions/f/invocations"
		b.ReportAllocs()
		for b.Loop() {
			resp, err := http.Post(target, "application/json", bytes.NewReader(payload))
			if err != nil {
				b.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !bytes.Equal(body, payload) {
				b.Fatalf("%s, %v", body, err)
			}
		}
	})
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			result, err := l.Invoke(context.Background(), "f", payload)
			if err != nil || !bytes.Equal(result.Payload, payload) {
				b.Fatalf("%+v, %v", result, err)
			}
		}
	})
}

// BenchmarkColdInvoke is a new process for every invoke.
func BenchmarkColdInvoke(b *testing.B) {
	f := self(b, "f")
	l, err := emulator.New(emulator.Config{Functions: []emulator.Function{f}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close(context.Background())
	for b.Loop() {
		if err := l.Replace(f); err != nil {
			b.Fatal(err)
		}
		if _, err := l.Invoke(context.Background(), "f", nil); err != nil {
			b.Fatal(err)
		}
	}
}
