// Package choice has settings that take one of a few words.
package choice

import (
	"fmt"
	"slices"
	"strings"
)

// Value is a setting that takes one of a few words. It is a pflag.Value.
type Value struct {
	word  string
	words []string
}

// Of returns a setting of words, the first of which is the default.
func Of(words ...string) Value { return Value{words[0], words} }

// String returns the word that was chosen.
func (v *Value) String() string { return v.word }

// Set chooses a word.
func (v *Value) Set(word string) error {
	if !slices.Contains(v.words, word) {
		last := len(v.words) - 1
		return fmt.Errorf("use %s or %s", strings.Join(v.words[:last], ", "), v.words[last])
	}
	v.word = word
	return nil
}

// Type returns the words, as the help of a flag shows them.
func (v *Value) Type() string { return strings.Join(v.words, "|") }

// Words returns the words.
func (v *Value) Words() []string { return v.words }

// Index returns the place of the word that was chosen.
func (v *Value) Index() int { return slices.Index(v.words, v.word) }
