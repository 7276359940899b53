package sample

import (
	"runtime"
	"strings"
	"testing"
)

func TestAdd(t *testing.T) {
	var l list[int]
	for i := range 4 {
		if kept := l.Add(i, "why", "not"); kept != (i < 3) {
			t.Errorf("%d: kept %t", i, kept)
		}
	}
}

func TestFirst(t *testing.T) {
	if n := First([][]int{{-1, 2}, {3, 4}}); n != 4 {
		t.Errorf("%d", n)
	}
}

func TestReset(t *testing.T) {
	l := &list[int]{all: []int{1}}
	Reset(l)
	if len(l.all) != 0 {
		t.Errorf("%d are left", len(l.all))
	}
}

func TestSafe(t *testing.T) {
	var at string
	problem := Safe(func() {
		_, file, line, _ := runtime.Caller(1)
		at = file[strings.LastIndex(file, "/")+1:]
		if line != 42 {
			t.Errorf("it is called in line %d, and not in 42", line)
		}
		panic("lost")
	})
	if problem != "lost" || at != "sample.go" {
		t.Errorf("%v, called in %s", problem, at)
	}
}
