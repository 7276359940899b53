// Package plural writes counts in words. The library has the same package; the program uses the library's public
// packages only, as other programs do.
package plural

import (
	"fmt"
	"strings"
)

// Of returns a count in words, such as "1 message", "2 messages" or "3 copies". The noun is
// singular; Of adds the ending of the plural to its last word.
func Of[N ~int | ~int64 | ~uint64](n N, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprint(n) + " " + noun
}
