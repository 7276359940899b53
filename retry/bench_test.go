package retry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

func BenchmarkDecide(b *testing.B) {
	err := fmt.Errorf("delivering: %w", errPlain)
	for _, j := range jitters {
		b.Run(j.String(), func(b *testing.B) {
			p := retry.Policy{Jitter: j}
			a := retry.Failure{N: 7, Seed: messageID(7), Sent: sent, First: first, Ended: first.Add(time.Minute), Err: err}
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(a)
			}
		})
	}
	b.Run("decorrelated at its longest", func(b *testing.B) {
		p := retry.Policy{Jitter: retry.Decorrelated, MaxAttempts: -1}
		a := retry.Failure{N: 1000, Seed: messageID(7), First: first, Ended: first, Err: err}
		b.ReportAllocs()
		for b.Loop() {
			p.Decide(a)
		}
	})
}

func BenchmarkAttempts(b *testing.B) {
	for _, receives := range []int{1, 5, 20} {
		b.Run(fmt.Sprintf("receives=%d", receives), func(b *testing.B) {
			var p retry.Policy
			b.ReportAllocs()
			for b.Loop() {
				p.Attempts("5fea7756-0ea4-451a-a703-a558b933e274", 0, receives, 96*time.Hour)
			}
		})
	}
}

func BenchmarkVisibility(b *testing.B) {
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		retry.Visibility(now, now, now.Add(time.Minute))
	}
}
