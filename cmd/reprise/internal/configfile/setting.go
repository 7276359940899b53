package configfile

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/pflag"
)

// Setting is a key with the name and the meaning of a command-line flag.
type Setting struct {
	Name string
	// Values are the elements of a list, or one value.
	Values []string

	list  bool
	where place
}

// Errorf returns an error that names the setting, and its place in the file.
func (s Setting) Errorf(format string, args ...any) error {
	return s.where.errorf("%s%w", s.Name, fmt.Errorf(format, args...))
}

// Apply sets the flag of the setting.
func (s Setting) Apply(flags *pflag.FlagSet) error {
	if !s.list {
		if err := flags.Set(s.Name, s.Values[0]); err != nil {
			return s.Errorf(": %w", err)
		}
		return nil
	}
	flag := flags.Lookup(s.Name) // a slice, or its key would have no list
	if err := flag.Value.(pflag.SliceValue).Replace(slices.Clone(s.Values)); err != nil {
		return s.Errorf(": %w", err)
	}
	flag.Changed = true
	return nil
}

// setting reads the value of a key: one, or a list.
func (r reader) setting(key ast.MapKeyNode, value ast.Node, keys keyList) (Setting, error) {
	s := Setting{Name: key.String(), where: r.at(key)}
	list, ok := value.(*ast.SequenceNode)
	if !ok || !keys.list(s.Name) {
		text, err := r.single(s.Name, value)
		s.Values = []string{text}
		return s, err
	}
	s.list = true
	for _, element := range list.Values {
		text, err := r.single(s.Name, element)
		if err != nil {
			return s, err
		}
		s.Values = append(s.Values, text)
	}
	return s, nil
}

// single returns one value of the key called name as text.
func (r reader) single(name string, n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return fmt.Sprint(n.(ast.ScalarNode).GetValue()), nil
	case *ast.NullNode:
		return "", r.at(n).errorf("%s has no value: give it one, or leave the line out", name)
	}
	return "", r.at(n).errorf("%s has to be a single value, or a list of them: write it behind the key, without anchors, aliases or tags", name)
}

// place is a position in a file.
type place struct {
	file string
	at   *token.Position // nil: the file as a whole
}

func (p place) errorf(format string, args ...any) error {
	where := p.file
	if p.at != nil {
		where = fmt.Sprintf("%s:%d:%d", p.file, p.at.Line, p.at.Column)
	}
	return fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...))
}
