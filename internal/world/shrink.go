package world

import "slices"

// Shrink returns a shorter list for which fails still reports true: it leaves out halves,
// quarters and so on, then single elements. The order stays. fails must not change the lists that
// it gets.
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
