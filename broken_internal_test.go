package reprise

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// PanicIn makes the n-th section of c and its retry lane panic: when it begins or, if late is set,
// when it starts its first effect.
func PanicIn(c *Consumer, n int, late bool) {
	m := &mistake{in: n, late: late}
	for _, c := range []*Consumer{c, c.retryLane} {
		if c != nil {
			c.mu.Lock()
			c.platform = &breaking{c.platform, m}
			c.mu.Unlock()
		}
	}
}

// mistake panics once.
type mistake struct {
	sections int // so far
	in       int
	late     bool
	made     bool
}

func (m *mistake) make(late bool) {
	if m.sections >= m.in && late == m.late && !m.made {
		m.made = true
		panic("a mistake of ours")
	}
}

// breaking is a platform with a mistake.
type breaking struct {
	platform
	*mistake
}

func (b *breaking) now() time.Time {
	b.sections++
	b.make(false)
	return b.platform.now()
}

func (b *breaking) startEffect(e consumer.Effect) {
	b.make(true)
	b.platform.startEffect(e)
}
