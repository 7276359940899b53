package pools

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// oneReceive is how many messages a receive brings at most.
const oneReceive = 10

// slowly passes calls to client, and delays each nth receive.
func slowly(client reprise.Client, nth int64, longer time.Duration) reprise.Client {
	var receives atomic.Int64
	return &kit.Spy{Client: client, Receive: func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
		out, err := client.ReceiveMessage(ctx, in)
		if receives.Add(1)%nth == 0 {
			time.Sleep(longer)
		}
		return out, err
	}}
}

// TestHigherPriorityGoesFirst: a queue with a backlog keeps a pool busy, and a hundred messages
// arrive in one of a higher priority. No message of the backlog is started until all hundred have
// been, although it was received long before.
func TestHigherPriorityGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		high, low := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		low.Send(kit.Numbered(400)...)
		pool, s := kit.PoolOf(t, 4), kit.NewStarts()
		high.In(pool, reprise.Share{Priority: 1}).Consume(s.Handler("high", time.Second), reprise.Config{})
		low.In(pool, reprise.Share{}).Consume(s.Handler("low", time.Second), reprise.Config{})
		begun := time.Now()
		time.Sleep(10500 * time.Millisecond)
		high.Send(kit.Numbered(100)...)
		high.WaitEmpty(time.Minute)
		low.WaitEmpty(10 * time.Minute)

		first := begun.Add(11 * time.Second) // when places become free
		for second := range 25 {
			from := first.Add(time.Duration(second) * time.Second)
			if h, l := s.Of("high", from, from.Add(time.Second)), s.Of("low", from, from.Add(time.Second)); h != 4 || l != 0 {
				t.Errorf("in second %d of the hundred %d of them and %d others were started, want 4 and 0", second, h, l)
			}
		}
		if n := s.Of("low", begun, first); n != 44 {
			t.Errorf("%d of the backlog were started in the 11 seconds before, want 44", n)
		}
		if s.Peak("") != 4 {
			t.Errorf("%d handlers ran at once, want 4", s.Peak(""))
		}
	})
}

// TestLowerPriorityIsNotReceivedInVain: while messages of a higher priority wait for an hour, those
// of a lower one stay in their queue, except the few that were received before; these keep their
// leases, and lose no receives.
func TestLowerPriorityIsNotReceivedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		high, low := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		high.Send(kit.Numbered(3600)...)
		pool, s := kit.PoolOf(t, 1), kit.NewStarts()
		low.In(pool, reprise.Share{}).Consume(s.Handler("low", time.Second), reprise.Config{Prefetch: 50})
		time.Sleep(time.Second)
		c := high.In(pool, reprise.Share{Priority: 1}).Consume(s.Handler("high", time.Second), reprise.Config{})
		time.Sleep(10500 * time.Millisecond)
		low.Send(kit.Numbered(100)...)
		time.Sleep(59 * time.Minute)
		received := 0
		for _, m := range low.Messages() {
			received += m.Receives
		}
		if received > 10 {
			t.Errorf("messages of the lower priority were received %d times, want one receive at most", received)
		}
		if n := s.Of("low", time.Time{}, time.Now()); n != 0 {
			t.Errorf("%d of them were started", n)
		}
		high.WaitEmpty(2 * time.Minute)
		low.WaitEmpty(5 * time.Minute)
		if n := c.Status().Counts; n.Attempts != 3600 || n.Lost != 0 || n.Duplicates != 0 {
			t.Errorf("counts %+v", n)
		}
	})
}

// TestFreedPlaceIsTold: a consumer that finds the pool full of messages of a higher priority, and
// holds none itself, begins as soon as there is a place.
func TestFreedPlaceIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		high, low := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		high.Send(kit.Numbered(60)...)
		low.Send(kit.Numbered(10)...)
		pool, s := kit.PoolOf(t, 1), kit.NewStarts()
		high.In(pool, reprise.Share{Priority: 1}).Consume(s.Handler("high", time.Second), reprise.Config{})
		time.Sleep(500 * time.Millisecond)
		begun := time.Now().Add(-500 * time.Millisecond)
		low.In(pool, reprise.Share{}).Consume(s.Handler("low", time.Second), reprise.Config{})
		time.Sleep(65 * time.Second)
		if n := s.Of("low", begun, begun.Add(60*time.Second)); n != 0 {
			t.Errorf("%d were started while others waited", n)
		}
		if n := s.Of("low", begun.Add(60*time.Second), begun.Add(65*time.Second)); n != 5 {
			t.Errorf("%d were started in the 5 s after that, want 5", n)
		}
	})
}

// TestWeightsShareThePool: while all queues have messages, their handlers are started in proportion
// to the weights: in any period to within one start, and a fraction of one for each queue beyond
// two.
func TestWeightsShareThePool(t *testing.T) {
	for _, weights := range [][]int{{1, 1}, {3, 1}, {1, 10}, {5, 3, 2}, {1, 1, 1, 7}, {1000, 999}} {
		t.Run(fmt.Sprint(weights), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, s := kit.PoolOf(t, 8), kit.NewStarts()
				var sum float64
				for i, weight := range weights {
					q := reprisetest.NewQueue(t, nil)
					q.Send(kit.Numbered(1000)...)
					q.In(pool, reprise.Share{Weight: weight}).Consume(s.Handler(fmt.Sprint(i), time.Second), reprise.Config{Prefetch: 40, StopBudget: time.Second})
					sum += float64(weight)
				}
				begun := time.Now()
				time.Sleep(100500 * time.Millisecond)
				from := begun.Add(20 * time.Second) // by when all of them have had messages for long
				for second := 1; second <= 80; second++ {
					to := from.Add(time.Duration(second) * time.Second)
					all := 8 * second
					if n := s.Of("", from, to); n != all {
						t.Fatalf("%d were started in %d seconds, want %d: all places used", n, second, all)
					}
					for i, weight := range weights {
						n, share := s.Of(fmt.Sprint(i), from, to), float64(all)*float64(weight)/sum
						within := 1 + float64(len(weights)-2)*float64(weight)/sum
						if math.Abs(float64(n)-share) > within+1e-9 {
							t.Errorf("of %d starts queue %d of weight %d has had %d, want %.1f to within %.1f", all, i, weight, n, share, within)
						}
					}
				}
			})
		})
	}
}

// TestIdlePlacesAreAnybodys: a queue that alone has messages gets the whole pool, whatever its
// priority and weight, within its own Concurrency.
func TestIdlePlacesAreAnybodys(t *testing.T) {
	for _, tt := range []struct {
		name  string
		share reprise.Share
		cfg   reprise.Config
		want  int
	}{
		{"low priority", reprise.Share{Priority: -5}, reprise.Config{}, 32},
		{"small weight", reprise.Share{Weight: 1}, reprise.Config{}, 32},
		{"its own limit", reprise.Share{}, reprise.Config{Concurrency: 20}, 20},
		{"no prefetch", reprise.Share{}, reprise.Config{Prefetch: -1}, 32},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, s := kit.PoolOf(t, 32), kit.NewStarts()
				for _, other := range []reprise.Share{{Priority: 10}, {Weight: 1000}} {
					reprisetest.NewQueue(t, nil).In(pool, other).Consume(s.Handler("other", time.Second), reprise.Config{})
				}
				heavy := reprise.Share{Weight: 1000}
				reprisetest.NewQueue(t, nil).In(pool, heavy).Consume(s.Handler("other", time.Second), reprise.Config{Prefetch: -1})
				q := reprisetest.NewQueue(t, nil)
				q.In(pool, tt.share).Consume(s.Handler("this", time.Second), tt.cfg)
				time.Sleep(time.Minute)
				q.Send(kit.Numbered(1000)...)
				q.WaitEmpty(time.Hour)
				if s.Peak("this") != tt.want {
					t.Errorf("%d ran at once, want %d", s.Peak("this"), tt.want)
				}
			})
		})
	}
}

// TestReceivedForPlacesOnly: four queues with endless messages share 400 places, and
// handlers take minutes. What waits in the process is a Prefetch for each, and no
// more than one receive beyond.
func TestReceivedForPlacesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 400), kit.NewStarts()
		for i := range 4 {
			q := reprisetest.NewQueue(t, nil)
			q.Send(kit.Numbered(500)...)
			name := fmt.Sprint(i)
			q.In(pool, reprise.Share{}).ConsumeWith(slowly(q.Direct(), 1, time.Duration(50+i)*time.Millisecond), s.Handler(name, 10*time.Minute), reprise.Config{StopBudget: time.Second})
		}
		for range 200 {
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			waiting := 0
			for _, q := range pool.Status().Queues {
				waiting += q.Status.Waiting
			}
			if waiting > 4*(10+oneReceive) {
				t.Fatalf("%d messages wait, want a Prefetch and a receive for each queue at most", waiting)
			}
		}
		if p := pool.Status(); p.Handlers != 400 || p.Concurrency != 400 || len(p.Queues) != 4 {
			t.Errorf("status %+v", p)
		}
	})
}

// TestSlowReceivesLoseNoShare: sometimes a receive of one queue takes so long that the queue has
// nothing to start. It makes up for that, and gets its share in the end.
func TestSlowReceivesLoseNoShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 8), kit.NewStarts()
		quick, slow := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		quick.Send(kit.Numbered(4000)...)
		slow.Send(kit.Numbered(4000)...)
		quick.In(pool, reprise.Share{}).Consume(s.Handler("quick", time.Second), reprise.Config{})
		slow.In(pool, reprise.Share{}).ConsumeWith(slowly(slow.Direct(), 5, 13*time.Second), s.Handler("slow", time.Second), reprise.Config{Prefetch: 20})
		begun := time.Now()
		time.Sleep(500500 * time.Millisecond)
		from, to := begun.Add(100*time.Second), begun.Add(500*time.Second)
		q, l := s.Of("quick", from, to), s.Of("slow", from, to)
		if q+l != 3200 || l < 1600-oneReceive || l > 1600+oneReceive {
			t.Errorf("%d and %d were started, want half each of 3200 to within %d", q, l, oneReceive)
		}
	})
}

// TestLongIdleIsNoCredit: a queue that had nothing for an hour does not make up for
// it, but for ten starts at most.
func TestLongIdleIsNoCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 1), kit.NewStarts()
		busy, idle := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		busy.Send(kit.Numbered(4500)...)
		busy.In(pool, reprise.Share{}).Consume(s.Handler("busy", time.Second), reprise.Config{})
		idle.In(pool, reprise.Share{}).Consume(s.Handler("idle", time.Second), reprise.Config{})
		time.Sleep(time.Hour + 500*time.Millisecond)
		idle.Send(kit.Numbered(200)...)
		from := time.Now()
		time.Sleep(100 * time.Second)
		if n := s.Of("idle", from, time.Now()); n < 50+oneReceive/2-1 || n > 50+oneReceive/2+1 {
			t.Errorf("%d of 100 were started, want half, and half of ten more", n)
		}
	})
}

// TestPausedAndOpenTakeNoPlaces: of three queues one is paused, and the dependency of another is
// unavailable. The third has the whole pool, although its priority is the lowest; when the others
// are back, they have their turns.
func TestPausedAndOpenTakeNoPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 4), kit.NewStarts()
		paused, down, low := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		mended := time.Now().Add(time.Hour)
		paused.Send(kit.Numbered(100)...)
		down.Send(kit.Numbered(100)...)
		low.Send(kit.Numbered(3000)...) // eleven minutes, and more
		p := paused.In(pool, reprise.Share{Priority: 2}).Consume(s.Handler("paused", time.Second), reprise.Config{})
		d := down.In(pool, reprise.Share{Priority: 1}).Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			s.Count("down", 1)
			defer s.Count("down", -1)
			if time.Now().Before(mended) {
				return reprise.Unavailable(kit.ErrUnavailable)
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: -1}})
		time.Sleep(time.Second)
		p.Pause()
		low.In(pool, reprise.Share{}).Consume(s.Handler("low", time.Second), reprise.Config{})
		time.Sleep(time.Minute)
		from := time.Now()
		time.Sleep(10 * time.Minute)
		if n := s.Of("low", from, time.Now()); n < 4*600-10 {
			t.Errorf("%d of the lowest priority were started in ten minutes, want all places used but for canaries", n)
		}
		if b := d.Status().Breakers; len(b) != 1 {
			t.Errorf("breakers %+v, want one open", b)
		}
		if n := s.Of("paused", from, time.Now()); n != 0 {
			t.Errorf("%d were started by the paused consumer", n)
		}
		p.Resume()
		paused.WaitEmpty(2 * time.Minute)
		down.WaitEmpty(2 * time.Hour)
	})
}

// TestAddRefuses: Add refuses a pool that NewPool has not made, an invalid share, and everything
// that New refuses; the pool then stays as it was.
func TestAddRefuses(t *testing.T) {
	q, h := reprisetest.NewQueue(t, nil), reprise.HandlerFunc(kit.Succeed)
	for name, tt := range map[string]struct {
		pool  *reprise.Pool
		share reprise.Share
		cfg   reprise.Config
		want  []string
	}{
		"a pool of nobody's": {new(reprise.Pool), reprise.Share{}, reprise.Config{}, []string{"the pool is the zero Pool", "NewPool"}},
		"a negative weight":  {kit.PoolOf(t, 1), reprise.Share{Weight: -1}, reprise.Config{}, []string{"Share.Weight is -1", "1 to 1000"}},
		"a large weight":     {kit.PoolOf(t, 1), reprise.Share{Weight: 1001}, reprise.Config{}, []string{"Share.Weight is 1001", "1 to 1000"}},
		"all at once":        {kit.PoolOf(t, 1), reprise.Share{Weight: 1001}, reprise.Config{Lease: 1}, []string{"Share.Weight is 1001", "Config.Lease is 1ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := tt.pool.Add(q.Direct(), q.URL(), h, tt.share, tt.cfg)
			if err == nil || c != nil {
				t.Fatal("accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if n := len(tt.pool.Status().Queues); n != 0 {
				t.Errorf("the pool has %d consumers", n)
			}
		})
	}
}
