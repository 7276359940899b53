package simulate

import "time"

// series collects periods, and joins them when there are too many.
type series struct {
	width time.Duration
	auto  bool
	all   []Bucket
}

// widths are the lengths of periods that are chosen automatically. Each divides the next.
var widths = []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute,
	30 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
}

// autoBuckets is how many periods there are at the most if their length is chosen automatically. Every
// ratio of two lengths divides it.
const autoBuckets = 600

func newSeries(width time.Duration) series {
	if width == 0 {
		return series{width: widths[0], auto: true}
	}
	return series{width: width}
}

func (s *series) add(b Bucket) {
	s.all = append(s.all, b)
	if len(s.all) < s.most() {
		return
	}
	ratio := 2
	if s.auto {
		for i := range widths[1:] {
			if widths[i] == s.width {
				ratio = int(widths[i+1] / s.width)
			}
		}
	}
	joined := s.all[:0]
	for i := 0; i < len(s.all); i += ratio {
		joined = append(joined, join(s.all[i:min(i+ratio, len(s.all))]))
	}
	s.all, s.width = joined, s.width*time.Duration(ratio)
}

func (s *series) most() int {
	if s.auto {
		return autoBuckets
	}
	return MaxBuckets
}

// join makes one period of several: it sums what happened, and ends as the last.
func join(all []Bucket) Bucket {
	whole := all[len(all)-1]
	whole.At = all[0].At
	for _, b := range all[:len(all)-1] {
		whole.Arrived += b.Arrived
		whole.Started += b.Started
		whole.Failed += b.Failed
		whole.Done += b.Done
		whole.Dead += b.Dead
		whole.Peak = max(whole.Peak, b.Peak)
	}
	return whole
}
