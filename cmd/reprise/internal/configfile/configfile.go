// Package configfile reads the files that people write: the configuration of a server and of
// consumers, and faults. They are in YAML, which includes JSON. Unknown keys are errors, and every
// error names the file and the line.
package configfile

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/yamltext"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Config is the content of a configuration file. docs/config.md has its reference.
type Config struct {
	Settings []Setting
	Queues   []Queue
	Pools    []Pool
	Faults   map[string][]sqsserver.Fault // by the name of the queue; "*" is every queue
}

// Queue is a queue of the file.
type Queue struct {
	// Queue is what a server creates. Its name may be a URL, of a queue that exists.
	daemon.Queue
	// Consumed reports whether the queue is consumed, with the settings of Consume.
	Consumed bool
	Consume  []Setting

	where place
}

// Errorf returns an error that names the queue, and its place in the file.
func (q Queue) Errorf(format string, args ...any) error {
	return q.where.errorf("queue %q: %w", q.Name, fmt.Errorf(format, args...))
}

// Pool has places for handlers that several queues share.
type Pool struct {
	Name        string
	Concurrency int
}

// queueForm is a queue in the form of the file.
type queueForm struct {
	Name        string            `yaml:"name"`
	Attributes  map[string]any    `yaml:"attributes"`
	DeadLetter  string            `yaml:"dead-letter"`
	MaxReceives int               `yaml:"max-receives"`
	Tags        map[string]string `yaml:"tags"`
}

// reader reads one file.
type reader struct{ file string }

func (r reader) at(n ast.Node) place { return place{r.file, n.GetToken().Position} }

// Read reads a configuration.
func Read(file string, keys Keys) (Config, error) {
	r := reader{file}
	var c Config
	root, err := r.parse()
	if err != nil || root == nil {
		return c, err
	}
	for key, value := range r.members(root, &err) {
		switch name := key.String(); {
		case name == "queues":
			err = r.queues(&c, value, keys)
		case name == "pools":
			err = r.pools(&c, value)
		case name == "faults":
			err = r.faults(&c.Faults, value)
		case !keys.Top.have(name):
			err = r.at(key).errorf("the key %q is unknown: use queues, pools, faults, or the name of a flag of reprise serve or reprise run without its dashes", name)
		default:
			var s Setting
			s, err = r.setting(key, value, keys.Top)
			c.Settings = append(c.Settings, s)
		}
		if err != nil {
			return Config{}, err
		}
	}
	return c, err
}

// ReadFaults reads a file of faults: a list for each queue, by its name; "*" is every
// queue.
func ReadFaults(file string) (map[string][]sqsserver.Fault, error) {
	r := reader{file}
	var faults map[string][]sqsserver.Fault
	root, err := r.parse()
	if err == nil && root != nil {
		err = r.unwrapped(root)
	}
	if err == nil && root != nil {
		err = r.faults(&faults, root)
	}
	return faults, err
}

// unwrapped returns an error if a file of faults has them under the key faults, as in a
// configuration file. A list of faults for a queue called faults is permitted.
func (r reader) unwrapped(root ast.Node) error {
	var err error
	for key, value := range r.members(root, &err) {
		var name string
		if err := r.decode(key, &name); err != nil {
			return err
		}
		if _, mapping := value.(ast.MapNode); mapping && name == "faults" {
			return r.at(key).errorf("a file of faults begins with the names of the queues: remove the key %q, which belongs to a configuration file", name)
		}
	}
	return err
}

// parse returns the file's content, nil if it is empty.
func (r reader) parse() (ast.Node, error) {
	text, err := os.ReadFile(r.file)
	if err != nil {
		return nil, err // names the file
	}
	parsed, err := yamltext.Parse(text)
	if err != nil {
		return nil, r.explain(err, place{file: r.file})
	}
	if err := r.oneBeginning(text); err != nil {
		return nil, err
	}
	var bodies []ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, nil
	case 1:
		return bodies[0], nil
	}
	return nil, errSecondDocument(r.at(bodies[1]))
}

// oneBeginning fails if text has two marks at which documents begin. The parser skips a
// document that follows an empty one.
func (r reader) oneBeginning(text []byte) error {
	marks := 0
	for _, t := range lexer.Tokenize(string(text)) {
		if t.Type != token.DocumentHeaderType {
			continue
		}
		if marks++; marks > 1 {
			return errSecondDocument(place{r.file, t.Position})
		}
	}
	return nil
}

func errSecondDocument(at place) error {
	return at.errorf("a second document begins: put everything into one")
}

// explain adds the file and the line to an error of the YAML package, or the place at if
// the error has none.
func (r reader) explain(err error, at place) error {
	if deep, ok := errors.AsType[*yamltext.DepthError](err); ok {
		return place{r.file, deep.Position}.errorf("%w", err)
	}
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		return at.errorf("%w", err)
	}
	at = place{r.file, e.GetToken().Position}
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok && kinds[wrong.DstType.Kind()] != "" {
		return at.errorf("%q has to be %s", wrong.Token.Value, kinds[wrong.DstType.Kind()])
	}
	if wrong, ok := errors.AsType[*yaml.OverflowError](err); ok {
		return at.errorf("%s is too large a number", wrong.SrcNum)
	}
	return at.errorf("%s", e.GetMessage())
}

// kinds names the types of values in words.
var kinds = map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Float64: "a number", reflect.String: "text"}

// members yields the keys and values of a mapping, in the order of the file. If n is not a
// mapping it sets *err.
func (r reader) members(n ast.Node, err *error) func(func(ast.MapKeyNode, ast.Node) bool) {
	return func(yield func(ast.MapKeyNode, ast.Node) bool) {
		mapping, ok := n.(ast.MapNode)
		if !ok {
			*err = r.at(n).errorf("this has to be a mapping: lines of the form key: value")
			return
		}
		for it := mapping.MapRange(); it.Next(); {
			if !yield(it.KeyValue().Key, it.Value()) {
				return
			}
		}
	}
}

// elements returns the elements of a list.
func (r reader) elements(n ast.Node) ([]ast.Node, error) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, r.at(n).errorf("this has to be a list: lines that begin with a dash")
	}
	return list.Values, nil
}

// faults reads lists of faults by queue.
func (r reader) faults(into *map[string][]sqsserver.Fault, n ast.Node) error {
	var err error
	for key, value := range r.members(n, &err) {
		var name string
		if err := r.decode(key, &name); err != nil {
			return err
		}
		list, err := r.faultList(value)
		if err != nil {
			return err
		}
		if err := r.add(into, key, name, list); err != nil {
			return err
		}
	}
	return err
}

func (r reader) add(into *map[string][]sqsserver.Fault, n ast.Node, queue string, faults []sqsserver.Fault) error {
	if _, twice := (*into)[queue]; twice {
		return r.at(n).errorf("queue %q has faults in two places: keep one", queue)
	}
	if *into == nil {
		*into = make(map[string][]sqsserver.Fault)
	}
	(*into)[queue] = faults
	return nil
}

func (r reader) faultList(n ast.Node) ([]sqsserver.Fault, error) {
	elements, err := r.elements(n)
	if err != nil {
		return nil, err
	}
	var faults []sqsserver.Fault
	for _, element := range elements {
		var f sqsserver.Fault
		if err := r.decode(element, &f); err != nil {
			return nil, err
		}
		if err := f.Validate(); err != nil {
			return nil, r.at(element).errorf("%w", err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// decode reads a node into a Go value. Keys that the value does not have are errors.
func (r reader) decode(n ast.Node, into any) error {
	err := yaml.NodeToValue(n, into, yaml.Strict())
	if err == nil {
		return nil
	}
	err = r.explain(err, r.at(n))
	if keys := keysOf(into); strings.Contains(err.Error(), "unknown field") && len(keys) > 0 {
		return fmt.Errorf("%w: use one of %s", err, strings.Join(keys, ", "))
	}
	return err
}
