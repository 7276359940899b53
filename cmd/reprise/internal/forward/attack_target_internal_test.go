// This file holds off a command that floods its outputs, in each of many runs.

package forward

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// shared is a buffer that several runs write to.
type shared struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(p)
}

// TestAttackFloodOfRuns: many runs together write no more than is permitted, and how
// much is left out is said soon, and once.
func TestAttackFloodOfRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := new(shared)
		all := newOutputs(to, "standard error")
		begun := time.Now()
		line, written := []byte(strings.Repeat("x", 99)+"\n"), 0
		for time.Since(begun) < 10*time.Second {
			for range 100 { // runs, which write 1 MB each
				one := &output{all: all}
				for range 10_000 {
					_, _ = one.Write(line)
					written += len(line)
				}
				one.close()
			}
			time.Sleep(2 * time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if limit := terminal.LimitBurst + 11*terminal.LimitRate; to.Len() > limit {
			t.Errorf("%d bytes of %d are passed on, want %d at most", to.Len(), written, limit)
		}
		notices := strings.Count(to.String(), "bytes of the commands' standard error are left out")
		if notices < 4 || notices > 10 {
			t.Errorf("%d notices in 10 s", notices)
		}
		to.Reset()
		time.Sleep(time.Minute)
		one := &output{all: all}
		fmt.Fprint(one, "later")
		one.close()
		if to.String() != "later\n" {
			t.Errorf("a minute later: %q", to.String())
		}
	})
}
