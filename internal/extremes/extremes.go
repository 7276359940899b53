// Package extremes is for tests of settings: of each configuration either the constructor refuses what it
// cannot do, or it works, also with the largest and the smallest numbers that a field can hold.
package extremes

import (
	"math"
	"reflect"
)

// Of yields copies of base in which one number has an extreme value: an integer, a duration or a float,
// of base itself, a struct in it, or what a slice in it has. The name says which, and its value.
func Of[T any](base T, yield func(field string, value any, config T) bool) {
	at := reflect.ValueOf(&base).Elem()
	each(at, "", func(field string, v reflect.Value) bool {
		before := reflect.ValueOf(v.Interface())
		defer v.Set(before)
		for _, extreme := range of(v) {
			v.Set(extreme)
			if !yield(field, v.Interface(), base) {
				return false
			}
		}
		return true
	})
}

// each calls f for every number in v, until f returns false.
func each(v reflect.Value, name string, f func(string, reflect.Value) bool) bool {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			inside := field.Name
			if field.Anonymous {
				inside = ""
			}
			if name != "" && inside != "" {
				inside = name + "." + inside
			}
			if inside == "" {
				inside = name
			}
			if !each(v.Field(i), inside, f) {
				return false
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if !each(v.Index(i), name, f) {
				return false
			}
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return f(name, v)
	}
	return true
}

// of returns the extremes of v's type.
func of(v reflect.Value) (all []reflect.Value) {
	t := v.Type()
	switch {
	case v.CanInt():
		least, most := int64(math.MinInt64)>>(64-t.Bits()), int64(math.MaxInt64)>>(64-t.Bits())
		for _, n := range []int64{least, least + 1, least / 2, -1, 1, most/3 + 1, most/2 + 1, most - 1, most} {
			all = append(all, reflect.ValueOf(n).Convert(t))
		}
	case v.CanUint():
		most := uint64(math.MaxUint64) >> (64 - t.Bits())
		for _, n := range []uint64{1, most/2 + 1, most} {
			all = append(all, reflect.ValueOf(n).Convert(t))
		}
	case v.CanFloat():
		for _, n := range []float64{math.NaN(), math.Inf(-1), -math.MaxFloat64, -1, math.SmallestNonzeroFloat64, 1e-12, 1e12, math.MaxFloat64, math.Inf(1)} {
			all = append(all, reflect.ValueOf(n).Convert(t))
		}
	}
	return all
}
