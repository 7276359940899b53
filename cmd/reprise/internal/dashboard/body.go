package dashboard

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// body is the body of a message in the forms in which it can be shown. None of them is more than text or an image
// to the browser, whatever the body contains.
type body struct {
	Bytes int
	Text  string // escaped; its beginning if it is long
	Cut   int    // how many bytes are left out of Text
	Tree  *node  // nil: it is not JSON, or too large or too deep for a tree
	Hex   string // of its beginning
	Image template.URL
}

const (
	maxText  = 64 << 10
	maxHex   = 1 << 10
	maxImage = 1 << 20
	maxSmall = 16 << 10
	// maxNodes and maxDepth bound a tree, which takes far more room than its text.
	maxNodes = 2000
	maxDepth = 40
)

func newBody(text string) body {
	b := body{Bytes: len(text), Hex: hex.Dump([]byte(text[:min(len(text), maxHex)])), Tree: treeOf(text), Image: imageOf(text)}
	shown := text
	if len(shown) > maxText {
		shown = strings.ToValidUTF8(shown[:maxText], "")
		b.Cut = len(text) - len(shown)
	}
	b.Text = terminal.Escape(shown)
	return b
}

// Small reports that an image is part of the page, and not loaded when somebody asks for it.
func (b body) Small() bool { return b.Bytes <= maxSmall }

// node is a value of JSON.
type node struct {
	Name     string // of a member, or number of an element; empty: it is the whole
	Kind     string // object, array, string, number, word
	Text     string // of a value that has no others in it
	Children []*node
}

var errTooLarge = errors.New("too large for a tree")

// treeOf returns nil if text is not JSON with something in it.
func treeOf(text string) *node {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(trimmed))
	decoder.UseNumber()
	left := maxNodes
	root, err := readNode(decoder, "", maxDepth, &left)
	if err != nil {
		return nil
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return root
}

// readNode reads the next value token by token, and stops where the tree would become too large.
func readNode(decoder *json.Decoder, name string, depth int, left *int) (*node, error) {
	if *left--; *left < 0 || depth == 0 {
		return nil, errTooLarge
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	n := &node{Name: terminal.Escape(name)}
	switch v := token.(type) {
	case json.Delim:
		n.Kind = "object"
		if v == '[' {
			n.Kind = "array"
		}
		for i := 0; decoder.More(); i++ {
			child := grouped(int64(i))
			if v == '{' {
				key, err := decoder.Token()
				if err != nil {
					return nil, err
				}
				child, _ = key.(string)
			}
			c, err := readNode(decoder, child, depth-1, left)
			if err != nil {
				return nil, err
			}
			n.Children = append(n.Children, c)
		}
		_, err = decoder.Token() // its end
		return n, err
	case string:
		n.Kind, n.Text = "string", terminal.Escape(terminal.Shorten(v, maxText))
	case json.Number:
		n.Kind, n.Text = "number", v.String()
	case bool:
		n.Kind, n.Text = "word", "false"
		if v {
			n.Text = "true"
		}
	default:
		n.Kind, n.Text = "word", "null"
	}
	return n, nil
}

// images are the types that browsers decode and that can have no script in them.
var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// imageOf returns the body as an image, if it is one in base64, which is how SQS's bodies can have one.
func imageOf(text string) template.URL {
	text = strings.TrimSpace(text)
	if len(text) < 16 || len(text) > maxImage {
		return ""
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	kind := http.DetectContentType(content)
	if !slices.Contains(images, kind) {
		return ""
	}
	return template.URL("data:" + kind + ";base64," + text) //nolint:gosec // G203: it is base64, which was decoded
}
