package extremes

import (
	"encoding/binary"
	"math"
	"reflect"
	"regexp"
	"time"
)

// A Drawn number is one that Draw has set.
type Drawn struct {
	Field string // as Of names it
	Value any
	at    reflect.Value
}

// Reset makes the number zero, which stands for its default.
func (d Drawn) Reset() { d.at.SetZero() }

// Named reports whether text has the last part of the field's name as a word.
func (d Drawn) Named(text string) bool {
	last := regexp.MustCompile(`\w+$`).FindString(d.Field)
	return regexp.MustCompile(`(?i)\b` + last + `\b`).MatchString(text)
}

// Draw sets numbers of what config points to, several at once, as choices says: those that Of would
// change, each by a byte or more. It leaves about half of them as they are, and all when choices ends.
// The others become an extreme, or an ordinary number, or any number.
func Draw(config any, choices []byte) (drawn []Drawn) {
	each(reflect.ValueOf(config).Elem(), "", func(field string, v reflect.Value) bool {
		if len(choices) == 0 {
			return false
		}
		choice := int(choices[0])
		choices = choices[1:]
		const any, ordinary, extreme = 0x80, 0x88, 0xd0
		switch {
		case choice < any:
			return true
		case choice < ordinary:
			var bits [8]byte
			choices = choices[copy(bits[:], choices):]
			v.Set(anyOf(v, binary.LittleEndian.Uint64(bits[:])))
		case choice < extreme:
			all := ordinaryOf(v)
			v.Set(all[(choice-ordinary)%len(all)])
		default:
			all := of(v)
			v.Set(all[(choice-extreme)%len(all)])
		}
		drawn = append(drawn, Drawn{field, v.Interface(), v})
		return true
	})
	return drawn
}

// anyOf returns the number of v's type that has these bits.
func anyOf(v reflect.Value, bits uint64) reflect.Value {
	if v.CanFloat() {
		return reflect.ValueOf(math.Float64frombits(bits)).Convert(v.Type())
	}
	return reflect.ValueOf(bits).Convert(v.Type())
}

// ordinaryOf returns numbers of v's type as users set them.
func ordinaryOf(v reflect.Value) (all []reflect.Value) {
	var numbers []any
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		numbers = []any{time.Nanosecond, time.Millisecond, 100 * time.Millisecond, time.Second, 2 * time.Second, 20 * time.Second,
			time.Minute, 10 * time.Minute, time.Hour, 12 * time.Hour, 96 * time.Hour, 366 * 24 * time.Hour}
	case v.CanFloat():
		numbers = []any{0.001, 0.1, 0.5, 1.0, 2.0, 10.0, 1e3, 1e6}
	case v.Type().Bits() == 8: // of a list of choices
		numbers = []any{1, 2, 3}
	default:
		numbers = []any{1, 2, 3, 5, 10, 20, 100, 1000, 10_000, 100_000}
	}
	for _, n := range numbers {
		all = append(all, reflect.ValueOf(n).Convert(v.Type()))
	}
	return all
}
