package reprise

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// PanicIn makes the n-th section of c and its retry lane panic: when it begins or, if late is set,
// when it starts its first effect.
func PanicIn(c *Consumer, n int, late bool) {
	count := new(int)
	for _, c := range []*Consumer{c, c.retryLane} {
		if c != nil {
			c.platform = &breaking{platform: c.platform, count: count, n: n, late: late}
		}
	}
}

// breaking is a platform that panics once.
type breaking struct {
	platform
	count *int // of sections
	n     int
	late  bool
}

func (b *breaking) now() time.Time {
	if *b.count++; *b.count == b.n && !b.late {
		panic("a mistake of ours")
	}
	return b.platform.now()
}

func (b *breaking) startEffect(e consumer.Effect) {
	if *b.count >= b.n && b.late {
		b.late = false
		panic("a mistake of ours")
	}
	b.platform.startEffect(e)
}
