package terminal

import (
	"sync"
	"time"
)

// Limit bounds the output of programs that the operator runs. Without it, 1.8 GB in 4 s
// could fill a disk or a log, and hide everything else on a terminal. It may be used by
// several goroutines at once.
type Limit struct {
	notice func(omitted int64)

	mu       sync.Mutex
	room     float64 // bytes that may be written now
	at       time.Time
	omitted  int64 // bytes left out since the last notice
	noticing bool  // a notice is due
}

const (
	// LimitRate is how many bytes a second a [Limit] permits, LimitBurst how many at once.
	LimitRate  = 256 << 10
	LimitBurst = 1 << 20
	// noticeAfter is the time from the first byte that is left out to the notice.
	noticeAfter = time.Second
)

// NewLimit returns a Limit that calls notice with the number of bytes that were left out, at
// most about once a second and within a second.
func NewLimit(notice func(omitted int64)) *Limit {
	return &Limit{notice: notice, room: LimitBurst, at: time.Now()}
}

// Permit reports whether n bytes may be written now. If not, it counts them as left out.
func (l *Limit) Permit(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.room = min(LimitBurst, l.room+now.Sub(l.at).Seconds()*LimitRate)
	l.at = now
	if float64(n) <= l.room {
		l.room -= float64(n)
		return true
	}
	l.omitted += int64(n)
	if !l.noticing {
		l.noticing = true
		time.AfterFunc(noticeAfter, l.say)
	}
	return false
}

// say calls notice.
func (l *Limit) say() {
	l.mu.Lock()
	n := l.omitted
	l.omitted, l.noticing = 0, false
	l.mu.Unlock()
	l.notice(n)
}
