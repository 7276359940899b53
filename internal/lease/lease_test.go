package lease

import (
	"testing"
	"time"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// after is that long after start.
func after(d time.Duration) time.Time { return start.Add(d) }

// is checks a time that a lease has.
func is(t *testing.T, what string, got time.Time, want time.Duration) {
	t.Helper()
	if !got.Equal(after(want)) {
		t.Errorf("%s is %v after the start, want %v", what, got.Sub(start), want)
	}
}

func TestSlack(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		2 * time.Second:  200 * time.Millisecond,
		10 * time.Second: time.Second,
		time.Hour:        time.Second,
	} {
		if got := Slack(length); got != want {
			t.Errorf("of %v, %v are kept off, want %v", length, got, want)
		}
	}
}

func TestReceived(t *testing.T) {
	l := Received(start, after(2*time.Second), 30*time.Second, time.Second)
	is(t, "the end", l.End(), 31*time.Second)
	is(t, "the heartbeat", l.RenewAt(), 18*time.Second)
	if l.Over(after(31*time.Second - 1)) {
		t.Error("it is over before its end")
	}
	if !l.Over(after(31 * time.Second)) {
		t.Error("it is not over at its end")
	}
	if l.Lost() || l.Hidden() || l.Renewing() {
		t.Errorf("it begins as %+v", l)
	}
	if got := l.Age(after(time.Minute)); got != time.Minute {
		t.Errorf("a minute after the request it is %v old", got)
	}
	if none := new(Lease); !none.Over(start) {
		t.Error("the zero lease is not over")
	}
}

func TestHeartbeat(t *testing.T) {
	fresh := func() *Lease {
		l := Received(start, start, 30*time.Second, 0)
		return &l
	}
	for _, tt := range []struct {
		name    string
		change  func(*Lease)
		now     time.Duration
		horizon time.Duration
		due     bool
		urgent  bool
		again   time.Duration
	}{
		{"not yet", func(*Lease) {}, 11 * time.Second, 14 * time.Second, false, false, 15 * time.Second},
		{"soon enough to go along", func(*Lease) {}, 12 * time.Second, 15 * time.Second, true, false, 0},
		{"now", func(*Lease) {}, 15 * time.Second, 18 * time.Second, true, true, 0},
		{"failed, so not along with others", func(l *Lease) { l.RenewalFailed(after(15 * time.Second)) }, 16 * time.Second, 19 * time.Second, false, false, 15*time.Second + 2625*time.Millisecond},
		{"failed, and again in time", func(l *Lease) { l.RenewalFailed(after(15 * time.Second)) }, 15*time.Second + 2625*time.Millisecond, 21 * time.Second, true, false, 0},
		{"failed, and again at once", func(l *Lease) { l.RenewalFailed(after(15 * time.Second)) }, 18*time.Second + 500*time.Millisecond, 21 * time.Second, true, true, 0},
		{"hidden for longer", func(l *Lease) { l.Hide(start, after(time.Hour)) }, 40 * time.Minute, 41 * time.Minute, false, true, time.Hour - time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := fresh()
			tt.change(l)
			due, again := l.Heartbeat(after(tt.now), after(tt.horizon))
			if due != tt.due {
				t.Fatalf("due: %v, want %v", due, tt.due)
			}
			if !due {
				is(t, "the next look", again, tt.again)
			}
			if got := l.Urgent(after(tt.now)); got != tt.urgent {
				t.Errorf("urgent: %v, want %v", got, tt.urgent)
			}
		})
	}
}

// TestRenewal: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
// permits twelve hours from the receive; retry.Visibility keeps five seconds of them.
func TestRenewal(t *testing.T) {
	for _, tt := range []struct {
		age, least time.Duration
		want       int32
	}{
		{0, 30 * time.Second, 30},
		{20 * time.Second, 30 * time.Second, 30},
		{3 * time.Minute, 30 * time.Second, 180},
		{3*time.Minute + 900*time.Millisecond, 30 * time.Second, 180},
		{time.Hour, 30 * time.Second, 600},
		{time.Hour, 20 * time.Minute, 1200},
		{11*time.Hour + 59*time.Minute, 5 * time.Minute, 55},
		{13 * time.Hour, 5 * time.Minute, 0},
	} {
		l := Received(start, start, tt.least, 0)
		if got := l.Renewal(after(tt.age), tt.least); got != tt.want {
			t.Errorf("held for %v, with leases of %v: renewed for %d s, want %d s", tt.age, tt.least, got, tt.want)
		}
	}
}

func TestRenewed(t *testing.T) {
	l := Received(start, start, 30*time.Second, 0)
	l.Renewed(after(15*time.Second), 40*time.Second, 30*time.Second, 3*time.Second)
	is(t, "the end", l.End(), 54*time.Second)
	is(t, "the next heartbeat", l.RenewAt(), 38*time.Second)
	l.Renewed(after(40*time.Second), 30*time.Second, 30*time.Second, 0)
	is(t, "the next heartbeat after one of the usual length", l.RenewAt(), 55*time.Second)
	l.Renewed(after(50*time.Second), 20*time.Second, 30*time.Second, 0)
	is(t, "the end at the twelfth hour", l.End(), 69*time.Second)
	is(t, "the next heartbeat then", l.RenewAt(), 69*time.Second)
}

func TestRenewalFailed(t *testing.T) {
	for _, tt := range []struct {
		left, again, not time.Duration
	}{
		{16 * time.Second, 4 * time.Second, 3 * time.Second},
		{400 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
		{200 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
		{50 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond},
	} {
		l := Lease{end: after(tt.left)}
		l.RenewalFailed(start)
		is(t, "the next heartbeat", l.renewAt, tt.again)
		is(t, "the earliest", l.renewFrom, tt.not)
	}
}

func TestHide(t *testing.T) {
	l := Received(start, start, 30*time.Second, 0)
	l.Hide(after(10*time.Second), after(time.Hour))
	is(t, "the end", l.End(), time.Hour-time.Second)
	if !l.Hidden() || l.Lost() || l.Renewing() {
		t.Errorf("it is %+v", l)
	}
	l.Unhide(30 * time.Second)
	if l.Hidden() || l.Lost() || l.Renewing() {
		t.Errorf("then it is %+v", l)
	}
	is(t, "the heartbeat", l.RenewAt(), time.Hour-16*time.Second)
}

func TestShorten(t *testing.T) {
	l := Received(start, start, 30*time.Second, 0)
	l.Shorten(after(5*time.Second), 30*time.Second)
	is(t, "the end", l.End(), 4500*time.Millisecond)
}

// TestStates lists what becomes of a lease in each order of events that there is.
func TestStates(t *testing.T) {
	begin, end, lose := (*Lease).BeginRenewal, (*Lease).EndRenewal, (*Lease).Lose
	again := func(l *Lease) { l.Adopt(Received(after(time.Minute), after(time.Minute), 30*time.Second, 0)) }
	for _, tt := range []struct {
		name   string
		events []func(*Lease)
		want   state
	}{
		{"kept", nil, kept},
		{"a heartbeat", []func(*Lease){begin}, renewing},
		{"renewed", []func(*Lease){begin, end}, kept},
		{"lost", []func(*Lease){lose}, lost},
		{"lost during a heartbeat", []func(*Lease){begin, lose}, lostRenewing},
		{"lost during a heartbeat that has ended", []func(*Lease){begin, lose, end}, lost},
		{"received again", []func(*Lease){lose, again}, kept},
		{"received again during a heartbeat", []func(*Lease){begin, again}, renewing},
		{"lost during a heartbeat, and received again", []func(*Lease){begin, lose, again}, renewing},
		{"and renewed", []func(*Lease){begin, lose, again, end}, kept},
		{"hidden, and received again", []func(*Lease){func(l *Lease) { l.Hide(start, after(time.Hour)) }, again}, kept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := Received(start, start, 30*time.Second, 0)
			l.RenewalFailed(after(15 * time.Second))
			failed := l.renewFrom
			for _, event := range tt.events {
				event(&l)
			}
			if l.state != tt.want {
				t.Errorf("the state is %d, want %d", l.state, tt.want)
			}
			if renews, gone := tt.want == renewing || tt.want == lostRenewing, tt.want == lost || tt.want == lostRenewing; l.Renewing() != renews || l.Lost() != gone {
				t.Errorf("in state %d, renewing: %v, lost: %v", l.state, l.Renewing(), l.Lost())
			}
			if !l.renewFrom.Equal(failed) {
				t.Errorf("no heartbeat before %v, want %v", l.renewFrom, failed)
			}
		})
	}
	l := Received(start, start, 30*time.Second, 0)
	again(&l)
	is(t, "the end of what was received again", l.End(), 89*time.Second)
	if got := l.Age(after(2 * time.Minute)); got != time.Minute {
		t.Errorf("what was received again is %v old", got)
	}
}

// TestLateHeartbeats: of the fifteen seconds less the slack that a lease of thirty has left when its heartbeat
// is due, a quarter may pass without harm, and after a half the heartbeat is late.
func TestLateHeartbeats(t *testing.T) {
	l := Received(start, start, 30*time.Second, 0)
	left := l.End().Sub(l.RenewAt())
	if by := l.RenewBy(); left < time.Second || !by.Equal(l.RenewAt().Add(left/4)) {
		t.Errorf("due at %v, it should be renewed by %v, and ends at %v", l.RenewAt(), by, l.End())
	}
	half := l.RenewAt().Add(left / 2)
	if l.Late(half.Add(-time.Nanosecond)) || !l.Late(half.Add(time.Nanosecond)) {
		t.Errorf("late before %v: %t; after it: %t", half, l.Late(half.Add(-time.Nanosecond)), l.Late(half.Add(time.Nanosecond)))
	}
}
