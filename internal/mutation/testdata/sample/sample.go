// Package sample has a mutant of each kind.
package sample

type celsius float64

// Level says how warm it is.
func Level(t celsius, dry bool) (level int, known bool) {
	if t < 10 {
		return 0, true
	}
	if t > 30 && !dry {
		level++
	}
	level = level + int((t+5)/10)
	for i := 0; ; i++ {
		if i == 3 {
			break
		}
		note(i)
	}
	return level, t != 17
}

var notes = firstNotes(0)

// firstNotes runs before any test, also when the tests are only listed.
func firstNotes(n int) []int { return make([]int, n+1)[:0] }

func note(i int) { notes = append(notes, i) }

// Idle is called by no test.
func Idle(a, b int) bool { return a <= b || a*2 == b }
