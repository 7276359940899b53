// Package sample has functions of all kinds.
package sample

const (
	least = 1
	most  = 3
)

type list[T any] struct{ all []T }

// Add keeps up to most.
func (l *list[T]) Add(one T, _ ...string) (kept bool) {
	if len(l.all) == most && most >= least {
		return false
	}
	l.all = append(l.all, one)
	return true
}

// First is the first even number among some rows.
func First(rows [][]int) int {
rows:
	for _, row := range rows {
		for _, n := range row {
			if n < 0 {
				continue rows
			}
			if n%2 == 0 {
				return n
			}
		}
	}
	return -1
}

// Reset has no result.
func Reset(l *list[int]) { l.all = nil }

// Safe is what f panics with.
func Safe(f func()) (problem any) {
	defer func() { problem = recover() }()
	f()
	return nil
}
