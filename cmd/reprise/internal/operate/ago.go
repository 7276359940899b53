package operate

import (
	"fmt"
	"strconv"
	"time"
)

// Ago is a time that has passed, in its largest unit or two: "12s", "5m", "3h 20m", "4d 2h".
func Ago(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d >= day:
		return twoUnits(int(d/day), "d", int(d%day/time.Hour), "h")
	case d >= time.Hour:
		return twoUnits(int(d/time.Hour), "h", int(d%time.Hour/time.Minute), "m")
	case d >= time.Minute:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return strconv.Itoa(int(d/time.Second)) + "s"
}

// Clock is a time in the local zone, without the date if it is less than twelve hours from now.
func Clock(t, now time.Time) string {
	if t = t.Local(); now.Sub(t).Abs() < 12*time.Hour {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func twoUnits(n int, unit string, rest int, smaller string) string {
	if rest == 0 {
		return strconv.Itoa(n) + unit
	}
	return fmt.Sprintf("%d%s %d%s", n, unit, rest, smaller)
}

func count(n int) string { return strconv.Itoa(n) }
