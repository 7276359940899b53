// Package yamltext parses YAML of authors who are not trusted. The parser is recursive, and its
// memory grows with the square of the depth of nesting, so the depth is checked first.
package yamltext

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxDepth is how deep brackets and dashes may be nested. Mappings in block style are not
// counted: each level of those needs a line that is indented further, so a text that
// nests them deeply is large.
const MaxDepth = 100

const byteOrderMark = "\ufeff" // of editors on Windows

// DepthError is the error of a text that is nested deeper than MaxDepth.
type DepthError struct {
	// Position is that of the first bracket or dash that is too deep.
	Position *token.Position
}

// Error leaves out the position, which callers add in their own form.
func (e *DepthError) Error() string {
	return fmt.Sprintf("this is nested more than %d deep: take levels out", MaxDepth)
}

// Parse parses YAML, of which JSON is a part, with or without a byte order mark. Its
// error is a *DepthError, or one of the YAML package.
func Parse(text []byte) (*ast.File, error) {
	tokens := lexer.Tokenize(string(bytes.TrimPrefix(text, []byte(byteOrderMark))))
	if err := checkDepth(tokens); err != nil {
		return nil, err
	}
	return parser.Parse(tokens, 0)
}

// checkDepth counts tokens, not bytes: brackets and dashes in strings and comments do not
// nest.
func checkDepth(tokens token.Tokens) error {
	brackets := 0
	var dashes []int // the columns of the lists in block style around a token
	for _, t := range tokens {
		switch t.Type {
		case token.CommentType:
			continue
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets = max(brackets-1, 0)
			continue
		}
		if brackets == 0 {
			for len(dashes) > 0 && dashes[len(dashes)-1] > t.Position.Column {
				dashes = dashes[:len(dashes)-1]
			}
			if t.Type == token.SequenceEntryType && (len(dashes) == 0 || dashes[len(dashes)-1] < t.Position.Column) {
				dashes = append(dashes, t.Position.Column)
			}
		}
		if brackets+len(dashes) > MaxDepth {
			return &DepthError{t.Position}
		}
	}
	return nil
}
