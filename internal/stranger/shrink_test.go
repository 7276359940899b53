package stranger_test

import (
	"reflect"
	"testing"
	"time"
)

// shrink returns a smaller scenario that breaks the same promise, and how it does: what is planned is dropped, and
// settings are set back to their defaults, one at a time, as long as the promise is broken. It runs at
// most tries scenarios, for 20 s at most.
func shrink(t *testing.T, s scenario, b broken, tries int) (scenario, []string) {
	how := b.how
	deadline := time.Now().Add(20 * time.Second)
	breaks := func(smaller scenario) bool {
		if tries--; time.Now().After(deadline) {
			tries = 0
		}
		for _, other := range run1(t, smaller) {
			if other.check.name == b.check.name {
				how = other.how
				return true
			}
		}
		return false
	}
	for again := true; again && tries > 0; {
		again = false
		// Each candidate is a deep copy of s with one change, numbered in the order of the fields.
		for change := 0; tries > 0; {
			smaller, ok := smallerBy(s, change)
			if !ok {
				break
			}
			if breaks(smaller) {
				s, again = smaller, true // the next change has moved to this number
				continue
			}
			change++
		}
	}
	return s, how
}

// smallerBy returns a copy of s with one of the possible changes, and false if there are not so many.
func smallerBy(s scenario, change int) (scenario, bool) {
	v := reflect.New(reflect.TypeOf(s)).Elem()
	v.Set(clone(reflect.ValueOf(s)))
	done := lessen(v, &change)
	return v.Interface().(scenario), done
}

// clone copies a value with its slices.
func clone(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			c.Field(i).Set(clone(v.Field(i)))
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.Set(reflect.Append(c, clone(v.Index(i))))
		}
	default:
		c.Set(v)
	}
	return c
}

// lessen makes change number *n in v, and reports whether there is one: halves of slices are dropped
// first, then single elements, then what is in them is made smaller.
func lessen(v reflect.Value, n *int) bool {
	mine := func() bool { *n--; return *n < 0 }
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if lessen(v.Field(i), n) {
				return true
			}
		}
	case reflect.Slice:
		for size := v.Len() / 2; size >= 1; size /= 2 {
			for at := 0; at+size <= v.Len(); at += size {
				if mine() {
					v.Set(reflect.AppendSlice(v.Slice(0, at), v.Slice(at+size, v.Len())))
					return true
				}
			}
		}
		if v.Len() == 1 && mine() {
			v.SetLen(0)
			return true
		}
		for i := range v.Len() {
			if lessen(v.Index(i), n) {
				return true
			}
		}
	default:
		if !v.IsZero() && mine() {
			v.SetZero()
			return true
		}
	}
	return false
}
