package simulate

import "time"

// Change is a time from which on attempts fail with other chances than before, such as after a deploy.
type Change struct {
	// At is when it is, counted from the start. The attempts that begin from then on have its chances.
	At time.Duration `yaml:"at"`
	// Fails takes the place of [Handler.Fails] until the next change. It must not be empty: 0 is a
	// chance of none.
	Fails []float64 `yaml:"fails,flow"`
}

// failsAt returns the chances that hold at a time.
func (h *Handler) failsAt(at time.Duration) []float64 {
	for i := len(h.Changes) - 1; i >= 0; i-- {
		if c := &h.Changes[i]; at >= c.At {
			return c.Fails
		}
	}
	return h.Fails
}

// heldFails are chances, and the share of a time in which they hold.
type heldFails struct {
	fails []float64
	share float64
}

// failsWithin returns the chances that hold in a time, which is not empty.
func (h *Handler) failsWithin(from, to time.Duration) (all []heldFails) {
	add := func(fails []float64, start, end time.Duration) {
		if held := min(end, to) - max(start, from); held > 0 {
			all = append(all, heldFails{fails, float64(held) / float64(to-from)})
		}
	}
	fails, since := h.Fails, time.Duration(0)
	for _, c := range h.Changes {
		add(fails, since, c.At)
		fails, since = c.Fails, c.At
	}
	add(fails, since, to)
	return all
}

// chanceOf is the chance that an attempt fails, of which n is the number: that of the first is 1.
func chanceOf(fails []float64, n int) float64 {
	if len(fails) == 0 {
		return 0
	}
	return fails[min(n, len(fails))-1]
}

// lastFails returns the chances that hold at the end.
func (h *Handler) lastFails() []float64 {
	if n := len(h.Changes); n > 0 {
		return h.Changes[n-1].Fails
	}
	return h.Fails
}

// longestFails is how many attempts there are at the most whose chances differ.
func (h *Handler) longestFails() int {
	most := len(h.Fails)
	for _, c := range h.Changes {
		most = max(most, len(c.Fails))
	}
	return most
}
