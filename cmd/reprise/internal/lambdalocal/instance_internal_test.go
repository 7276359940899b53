package lambdalocal

import (
	"context"
	"os"
	"testing"
)

// TestDeathWhileIdle: an invoke that is given to a process which has died since the
// last one is handled by another. Its function never saw the first.
func TestDeathWhileIdle(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(Config{Functions: []Function{{Name: "f", Command: []string{program}, Dir: t.TempDir()}}})
	if err != nil {
		t.Fatal(err)
	}
	inv, err := newInvocation("arn", []byte(`{"do":"echo"}`), maxSyncPayload)
	if err != nil {
		t.Fatal(err)
	}
	p := l.pools["f"]
	dead := newInstance(p)
	dead.ready = true
	p.warm = []*instance{dead}
	if err := l.begin("f", inv); err != nil {
		t.Fatal(err)
	}
	if len(dead.active) != 1 {
		t.Fatal("the dead instance was not chosen: this test tests nothing")
	}
	dead.bury(obituary{failureExit, "Runtime exited without providing a reason"})
	<-inv.done
	if inv.err != nil || inv.result.FunctionError != "" || string(inv.result.Payload) != `{"do":"echo"}` {
		t.Errorf("the invoke ended with %+v, %v", inv.result, inv.err)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Errorf("Close = %v", err)
	}
}
