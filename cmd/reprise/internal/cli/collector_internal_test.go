package cli

import (
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

func TestCollectAt(t *testing.T) {
	for live, want := range map[uint64]int{
		0:                  1600,
		1 << 20:            1600,
		4 << 20:            1600,
		30 << 20:           210,
		garbageRoom:        100,
		garbageRoom - 1:    100,
		garbageRoom * 1000: 100,
	} {
		if got := collectAt(live); got != want {
			t.Errorf("with %d bytes alive: %d percent, want %d", live, got, want)
		}
	}
}

// TestRoomForGarbage: a server has room for garbage while little lives, and Go's own
// when much does; what the environment says stands.
func TestRoomForGarbage(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	start := func() {
		t.Helper()
		d, err := new(serverFlags).start(new(app), daemon.Config{Addr: "127.0.0.1:0", Region: "us-east-1", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			watchingGarbage = sync.Once{} // others of these tests may have started servers
			t.Setenv(name, "1000000000")
			start()
			watched := true
			if watchingGarbage.Do(func() { watched = false }); watched {
				t.Error("the collector's percentage is set")
			}
		})
	}
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	watchingGarbage = sync.Once{}
	start()
	awaitPercent(t, "little lives", func(percent uint64) bool { return percent >= 200 })
	awaitRoom(t)
	much := make([]byte, 2*garbageRoom)
	awaitPercent(t, "much lives", func(percent uint64) bool { return percent == 100 })
	runtime.KeepAlive(much)
	awaitPercent(t, "little lives again", func(percent uint64) bool { return percent >= 200 })
}

// awaitPercent collects until the collector's percentage is as wanted.
func awaitPercent(t *testing.T, when string, wanted func(uint64) bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !wanted(collectorPercent()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("when %s: %d percent", when, collectorPercent())
		}
		runtime.GC()
	}
}

// awaitRoom collects until the heap may grow by at most garbageRoom. It may for a moment
// grow by more, when less lives than before.
func awaitRoom(t *testing.T) {
	t.Helper()
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/goal:bytes"}}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		metrics.Read(heap)
		live, goal := heap[0].Value.Uint64(), heap[1].Value.Uint64()
		if goal <= live+garbageRoom {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("with %d bytes alive the heap may grow to %d, by more than %d", live, goal, garbageRoom)
		}
		runtime.GC()
	}
}

func collectorPercent() uint64 {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(percent)
	return percent[0].Value.Uint64()
}
