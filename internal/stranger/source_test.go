package stranger_test

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
)

// testSource is a test of this package that runs s.
func testSource(seed uint64, s scenario, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "func TestStrangerSeed%d(t *testing.T) { // %s\n\treplay(t, ", seed, name)
	write(&b, reflect.ValueOf(s), 1)
	b.WriteString(")\n}\n")
	return b.String()
}

// units are those of durations, the longest first.
var units = []struct {
	unit time.Duration
	name string
}{{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"}, {time.Microsecond, "time.Microsecond"}}

// write writes v as a Go expression, without fields that are zero.
func write(b *strings.Builder, v reflect.Value, depth int) {
	indent := strings.Repeat("\t", depth)
	switch x := v.Interface().(type) {
	case time.Duration:
		for _, u := range units {
			if x%u.unit == 0 && x != 0 {
				fmt.Fprintf(b, "%d * %s", x/u.unit, u.name)
				return
			}
		}
		fmt.Fprintf(b, "%d", x)
		return
	case reprise.Via:
		fmt.Fprintf(b, "%d", x)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		b.WriteString(strings.Replace(v.Type().String(), "stranger_test.", "", 1) + "{")
		several := v.NumField() > 4 && depth < 3
		written := 0
		for i := range v.NumField() {
			if f := v.Field(i); f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
				continue
			}
			if several {
				b.WriteString("\n\t" + indent)
			} else if written > 0 {
				b.WriteString(", ")
			}
			written++
			b.WriteString(v.Type().Field(i).Name + ": ")
			write(b, v.Field(i), depth+1)
			if several {
				b.WriteString(",")
			}
		}
		if several && written > 0 {
			b.WriteString("\n" + indent)
		}
		b.WriteString("}")
	case reflect.Slice:
		b.WriteString(strings.Replace(v.Type().String(), "stranger_test.", "", 1) + "{\n")
		for i := range v.Len() {
			b.WriteString(indent + "\t")
			write(b, v.Index(i), depth+2)
			b.WriteString(",\n")
		}
		b.WriteString(indent + "}")
	case reflect.String:
		fmt.Fprintf(b, "%q", v.String())
	default:
		fmt.Fprintf(b, "%v", v.Interface())
	}
}
