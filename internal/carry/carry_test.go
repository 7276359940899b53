package carry_test

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/retry"
)

var now = time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)

// days is a queue of the longest retention, on which no message is in danger.
var days = carry.Queue{Retention: 14 * 24 * time.Hour}

// TestDelays: the delay of a copy at the bounds between its rules.
func TestDelays(t *testing.T) {
	short, single, unread := days, days, days
	short.Retention, single.MaxReceives, unread.Unread = time.Minute, 1, true
	for name, tt := range map[string]struct {
		queue carry.Queue
		wait  time.Duration
		why   carry.Why
		more  carry.Wait
		want  int32
	}{
		"none":                              {days, 0, carry.Asked, carry.Wait{}, 1},
		"a part of a second":                {days, 1900 * time.Millisecond, carry.Asked, carry.Wait{}, 1},
		"below a minute, rounded down":      {days, 59_900 * time.Millisecond, carry.Asked, carry.Wait{}, 59},
		"a minute":                          {days, time.Minute, carry.Asked, carry.Wait{}, 60},
		"more, rounded up":                  {days, 60_100 * time.Millisecond, carry.Asked, carry.Wait{}, 61},
		"the longest":                       {days, 15 * time.Minute, carry.Asked, carry.Wait{}, 900},
		"longer, to be hidden":              {days, 15*time.Minute + 1, carry.Asked, carry.Wait{}, 1},
		"longer, for the quota":             {days, 16 * time.Minute, carry.Crowded, carry.Wait{}, 900},
		"longer, during a stop":             {days, 16 * time.Minute, carry.Asked, carry.Wait{Stopping: true}, 900},
		"of an outage":                      {days, time.Minute, carry.Asked, carry.Wait{Outage: true}, 1},
		"just below twelve hours":           {days, 12*time.Hour - time.Minute, carry.Asked, carry.Wait{}, 1},
		"within the last minute":            {days, 12*time.Hour - time.Minute + 1, carry.Asked, carry.Wait{}, 900},
		"as much longer as it is":           {days, 12*time.Hour + 15*time.Minute - 1, carry.Asked, carry.Wait{}, 900},
		"so long that it must be twice":     {days, 12*time.Hour + 15*time.Minute, carry.Asked, carry.Wait{}, 1},
		"the longest that the queue keeps":  {short, 45 * time.Second, carry.Asked, carry.Wait{}, 45},
		"longer, by a queue of a minute":    {short, 46 * time.Second, carry.Asked, carry.Wait{}, 1},
		"that and the quota":                {short, time.Hour, carry.Crowded, carry.Wait{}, 45},
		"which nobody may receive early":    {single, time.Hour, carry.LastReceive, carry.Wait{}, 900},
		"of an outage, likewise":            {single, time.Minute, carry.LastReceive, carry.Wait{Outage: true}, 60},
		"while the retention is not known":  {unread, time.Hour, carry.Unread, carry.Wait{}, 300},
		"likewise, for another reason":      {unread, 4 * time.Minute, carry.Asked, carry.Wait{}, 240},
		"likewise, and longer than minutes": {unread, 6 * time.Minute, carry.Asked, carry.Wait{}, 1},
	} {
		w := tt.more
		w.Now, w.Due = now, now.Add(tt.wait)
		if got := tt.queue.Delay(w, tt.why); got != tt.want {
			t.Errorf("%s: a wait of %v has a delay of %d s, want %d", name, tt.wait, got, tt.want)
		}
	}
}

// TestWhenACopyReplaces: by which bounds a message is hidden, or replaced by a copy.
func TestWhenACopyReplaces(t *testing.T) {
	const retention = 4 * time.Hour // copies wait for three hours at most
	longest := retry.MaxVisibility - 6*time.Second
	for name, tt := range map[string]struct {
		kept, wait time.Duration
		retention  time.Duration
		known      bool // its history has the due time
		want       carry.Why
	}{
		"short":                               {0, time.Minute, retention, false, carry.Hidden},
		"until a copy must be sent":           {time.Hour, 2 * time.Hour, retention, false, carry.Hidden},
		"a second longer":                     {time.Hour, 2*time.Hour + time.Second, retention, false, carry.Retention},
		"longer than a copy can wait":         {time.Hour, 4 * time.Hour, retention, true, carry.Hidden},
		"as long as a copy can wait":          {time.Hour, 3 * time.Hour, retention, true, carry.Retention},
		"when there is little time to copy":   {162 * time.Minute, 4 * time.Hour, retention, true, carry.Retention},
		"and a little more":                   {161 * time.Minute, 4 * time.Hour, retention, true, carry.Hidden},
		"as long as SQS hides, and a percent": {0, longest + longest/100, 96 * time.Hour, false, carry.Hidden},
		"longer than that":                    {0, longest + longest/98, 96 * time.Hour, false, carry.TooLong},
		"which other consumers know":          {0, longest + longest/98, 96 * time.Hour, true, carry.Hidden},
	} {
		q := carry.Queue{Retention: tt.retention}
		w := carry.Wait{Now: now, Due: now.Add(tt.wait), Requested: now.Add(-time.Second), Kept: now.Add(-tt.kept), Receives: 1, Known: tt.known}
		if got := q.Copies(w); got != tt.want {
			t.Errorf("%s: the cause of a copy is %d, want %d", name, got, tt.want)
		}
	}
}

// TestWhyACopyReplaces: which cause counts if there are several.
func TestWhyACopyReplaces(t *testing.T) {
	q := carry.Queue{MaxReceives: 3, Retention: 4 * time.Hour, Unread: true}
	w := carry.Wait{Now: now, Due: now.Add(5 * time.Hour), Requested: now, Kept: now, Receives: 3, Alone: true, Asked: true, Uncounted: true, Crowded: true}
	for i, less := range []func(){
		func() { w.Alone = false },
		func() { w.Receives = 2 },
		func() { w.Asked = false },
		func() { w.Uncounted = false },
		func() { w.Crowded = false },
		func() { q.Unread = false },
		func() { w.Due, w.Miscounts = now.Add(time.Hour), true },
		func() { w.Miscounts = false },
	} {
		want := []carry.Why{carry.Alone, carry.LastReceive, carry.Asked, carry.Uncounted, carry.Crowded, carry.Unread, carry.Retention, carry.Uncounted}[i]
		if got := q.Copies(w); got != want {
			t.Errorf("%d: the cause of a copy is %d, want %d", i, got, want)
		}
		less()
	}
	if got := q.Copies(w); got != carry.Hidden {
		t.Errorf("without any cause the cause of a copy is %d", got)
	}
}

// TestHide: a message is hidden for the twelve hours of its receive at most, and its wait is cut a little rather than
// hidden for twice.
func TestHide(t *testing.T) {
	const longest = 43_194 // a second has passed since the receive
	for name, tt := range map[string]struct {
		wait    time.Duration
		seconds int32
		parked  bool
	}{
		"rounded up":     {1500 * time.Millisecond, 2, false},
		"the longest":    {longest * time.Second, longest, false},
		"a little cut":   {43_630 * time.Second, longest, false},
		"hidden again":   {43_631 * time.Second, longest, true},
		"for days":       {72 * time.Hour, longest, true},
		"already is due": {-time.Second, 1, false},
	} {
		seconds, visible, parked := carry.Hide(now.Add(-time.Second), now, now.Add(tt.wait))
		if seconds != tt.seconds || parked != tt.parked || !visible.Equal(now.Add(time.Duration(seconds)*time.Second)) {
			t.Errorf("%s: a wait of %v is hidden for %d s, until %v, to be hidden again: %v; want %d s, %v", name, tt.wait, seconds, visible, parked, tt.seconds, tt.parked)
		}
	}
}

// TestRetentionBounds: what a queue's retention permits.
func TestRetentionBounds(t *testing.T) {
	for _, tt := range []struct{ retention, copy, last time.Duration }{
		{time.Minute, 45 * time.Second, 54 * time.Second},
		{4 * time.Hour, 3 * time.Hour, 216 * time.Minute},
		{96 * time.Hour, 72 * time.Hour, 95 * time.Hour},
		{14 * 24 * time.Hour, 13 * 24 * time.Hour, 14*24*time.Hour - time.Hour},
	} {
		q := carry.Queue{Retention: tt.retention}
		if by, last, end := q.CopyBy(now).Sub(now), q.LastChance(now).Sub(now), q.Expires(now).Sub(now); by != tt.copy || last != tt.last || end != tt.retention {
			t.Errorf("of %v: copied by %v, received by %v, dropped after %v; want %v, %v", tt.retention, by, last, end, tt.copy, tt.last)
		}
		if q.ExpiresBefore(now, now.Add(tt.last)) || !q.ExpiresBefore(now, now.Add(tt.last+1)) || q.ExpiresBefore(time.Time{}, now) {
			t.Errorf("of %v: a message may not wait for %v, or may wait longer", tt.retention, tt.last)
		}
	}
	if !days.CopyBy(time.Time{}).IsZero() || !days.Expires(time.Time{}).IsZero() || !days.LastChance(time.Time{}).IsZero() {
		t.Error("of a message whose age is not known, some time is")
	}
}
