// The attacker has the program wait for something that never comes, so that it does not end.

package interrupt

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAttackProgramThatHangs: the second signal ends a program that has not ended after 3 s, the third ends it at
// once. It does not matter that nobody reads what the program prints, or that its last act hangs.
func TestAttackProgramThatHangs(t *testing.T) {
	const hangs = time.Hour
	for name, tt := range map[string]struct {
		say, last time.Duration // how long they take
		signals   []os.Signal
		exits     time.Duration // after the first signal
		code      int
	}{
		"two signals":           {0, 0, []os.Signal{os.Interrupt, syscall.SIGTERM}, endWithin, 143},
		"three signals":         {0, 0, []os.Signal{os.Interrupt, os.Interrupt, syscall.SIGTERM}, 0, 130},
		"nobody reads":          {hangs, 0, []os.Signal{syscall.SIGTERM, os.Interrupt}, endWithin, 130},
		"a last act":            {0, exitWithin / 2, []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, endWithin + exitWithin/2, 143},
		"a last act that hangs": {0, hangs, []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, endWithin + exitWithin, 143},
		"everything hangs":      {hangs, hangs, []os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, exitWithin, 130},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, exited := make(chan os.Signal, 3), make(chan int, 1)
				cfg := Config{Say: func() { time.Sleep(tt.say) }, Last: func() { time.Sleep(tt.last) }}
				ctx, drain, _ := watch(t.Context(), cfg, signals, func(code int) { exited <- code })
				began := time.Now()
				for _, s := range tt.signals {
					signals <- s
				}
				code := <-exited
				if took := time.Since(began); code != tt.code || took != tt.exits {
					t.Errorf("it exits with %d after %v, want %d after %v", code, took, tt.code, tt.exits)
				}
				if stopped, ok := errors.AsType[Error](context.Cause(ctx)); !Requested(drain) || !ok || stopped.ExitCode() != tt.code {
					t.Errorf("the drain is requested: %v, and the context's cause is %v", Requested(drain), context.Cause(ctx))
				}
				time.Sleep(hangs) // until nothing hangs any more
			})
		})
	}
}

// TestStopThatIsNotHeldUp: the first signal drains a program although nobody reads what it prints.
func TestStopThatIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 3)
		ctx, drain, end := watch(t.Context(), Config{Say: func() { time.Sleep(time.Hour) }}, signals, func(int) { t.Error("it exits") })
		signals <- os.Interrupt
		began := time.Now()
		<-drain
		if took := time.Since(began); took != sayWithin || ctx.Err() != nil {
			t.Errorf("the drain begins after %v, want %v, and the context has ended: %v", took, sayWithin, ctx.Err())
		}
		end()
		time.Sleep(time.Hour)
	})
}

// TestProgramThatEnds: a program that ends by itself is not ended, after no signal, one, or two.
func TestProgramThatEnds(t *testing.T) {
	for n := range 3 {
		synctest.Test(t, func(t *testing.T) {
			signals := make(chan os.Signal, 3)
			ctx, drain, end := watch(t.Context(), Config{Say: func() {}}, signals, func(int) { t.Errorf("after %d signals it is ended", n) })
			for range n {
				signals <- syscall.SIGTERM
			}
			synctest.Wait()
			if Requested(drain) != (n > 0) || (ctx.Err() != nil) != (n > 1) {
				t.Errorf("after %d signals the drain is requested: %v, and the context has ended: %v", n, Requested(drain), ctx.Err() != nil)
			}
			end()
			time.Sleep(time.Hour)
		})
	}
}
