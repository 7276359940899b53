package dashboard

import (
	"fmt"
	"testing"
	"time"
)

// TestAttempts: ten at once, then one in ten seconds, for each address by itself; the memory is bounded.
func TestAttempts(t *testing.T) {
	var a attempts
	now := time.Unix(1, 0)
	for range maxAttempts {
		if wait := a.take("10.0.0.1:1", now); wait != 0 {
			t.Fatalf("waits %v", wait)
		}
	}
	if wait := a.take("10.0.0.1:2", now.Add(3*time.Second)); wait != attemptEvery-3*time.Second {
		t.Errorf("the eleventh waits %v", wait)
	}
	if wait := a.take("10.0.0.2:1", now); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	if wait := a.take("10.0.0.1:1", now.Add(attemptEvery)); wait != 0 {
		t.Errorf("ten seconds later it waits %v", wait)
	}
	if wait := a.take("10.0.0.1:1", now.Add(attemptEvery)); wait != attemptEvery {
		t.Errorf("the next waits %v", wait)
	}
	if networkOf("[2001:db8::1]:1") != networkOf("[2001:db8::2]:1") || networkOf("[::ffff:10.0.0.1]:1") != networkOf("10.0.0.1:1") {
		t.Error("addresses of one client are told apart")
	}
	for i := range 3 * maxAddresses {
		a.take(fmt.Sprintf("11.%d.%d.1:1", i/256, i%256), now)
	}
	if len(a.from) > maxAddresses+1 {
		t.Errorf("%d addresses are remembered", len(a.from))
	}
	if a.take("12.0.0.1:1", now) == 0 {
		t.Error("beyond the bound everybody may try")
	}
	if wait := a.take("12.0.0.1:1", now.Add(time.Hour)); wait != 0 || len(a.from) > maxAddresses {
		t.Errorf("an hour later: waits %v, %d addresses", wait, len(a.from))
	}
}
