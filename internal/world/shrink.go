package world

import "slices"

// Shrink returns a shorter list of what was done that still fails: it leaves out halves,
// quarters and so on, then one after the other, for as long as fails reports true for
// what is left. The order stays. fails is asked about lists that it must not change.
func Shrink[T any](all []T, fails func([]T) bool) []T {
	for part := max(len(all)/2, 1); len(all) > 0; {
		shorter := false
		for from := 0; from < len(all); {
			without := slices.Concat(all[:from], all[min(from+part, len(all)):])
			if fails(without) {
				all, shorter = without, true
			} else {
				from += part
			}
		}
		if part == 1 && !shorter {
			break
		}
		if part > 1 {
			part /= 2
		}
	}
	return all
}
