package table

import (
	"cmp"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"strings"
)

// expression evaluates DynamoDB's expressions on an item, which is nil if there is none.
type expression struct {
	names  map[string]string
	values map[string]value
	item   item

	tokens []string
	err    *failure // the first
}

var token = regexp.MustCompile(`\s*([#:]?[A-Za-z_][A-Za-z0-9_]*|<>|<=|>=|[=<>(),+-]|\S)`)

// begin splits the text into tokens.
func (e *expression) begin(text string) {
	e.tokens, e.err = nil, nil
	for _, m := range token.FindAllStringSubmatch(text, -1) {
		e.tokens = append(e.tokens, m[1])
	}
}

// next returns the next token; "" at the end.
func (e *expression) next() string {
	if len(e.tokens) == 0 {
		return ""
	}
	return e.tokens[0]
}

func (e *expression) take() string {
	t := e.next()
	if t != "" {
		e.tokens = e.tokens[1:]
	}
	return t
}

// accept consumes the next token if it is that word.
func (e *expression) accept(word string) bool {
	if !strings.EqualFold(e.next(), word) {
		return false
	}
	e.take()
	return true
}

func (e *expression) expect(word string) {
	if !e.accept(word) {
		e.refuse(e.next())
	}
}

// refuse reports the token at which the expression is not understood.
func (e *expression) refuse(t string) {
	if e.err == nil {
		e.err = invalid("at %q the expression is not one that is emulated: SET with values, if_not_exists, + and -; REMOVE; conditions of AND, OR, NOT, attribute_exists, attribute_not_exists and comparisons", t)
	}
	e.tokens = nil
}

// end returns the first problem; text after the expression is one.
func (e *expression) end() error {
	if t := e.next(); t != "" {
		e.refuse(t)
	}
	if e.err != nil {
		return e.err
	}
	return nil
}

// condition reports whether a condition holds.
func (e *expression) condition(text string) (bool, error) {
	e.begin(text)
	holds := e.or()
	return holds, e.end()
}

func (e *expression) or() bool {
	holds := e.and()
	for e.accept("OR") {
		holds = e.and() || holds // parse the rest even if it does not count
	}
	return holds
}

func (e *expression) and() bool {
	holds := e.not()
	for e.accept("AND") {
		holds = e.not() && holds
	}
	return holds
}

func (e *expression) not() bool {
	if e.accept("NOT") {
		return !e.not()
	}
	if e.accept("(") {
		holds := e.or()
		e.expect(")")
		return holds
	}
	for word, wanted := range map[string]bool{"attribute_exists": true, "attribute_not_exists": false} {
		if e.accept(word) {
			e.expect("(")
			_, exists := e.item[e.name()]
			e.expect(")")
			return exists == wanted
		}
	}
	left := e.operand()
	comparison := e.take()
	return e.compare(left, comparison, e.operand())
}

// compare compares two values; with a missing value only <> is true.
func (e *expression) compare(left value, comparison string, right value) bool {
	order, comparable := compareValues(left, right)
	switch comparison {
	case "=":
		return left != nil && reflect.DeepEqual(left, right) || comparable && order == 0
	case "<>":
		return !reflect.DeepEqual(left, right) && (!comparable || order != 0)
	case "<":
		return comparable && order < 0
	case "<=":
		return comparable && order <= 0
	case ">":
		return comparable && order > 0
	case ">=":
		return comparable && order >= 0
	}
	e.refuse(comparison)
	return false
}

// compareValues compares numbers and strings.
func compareValues(left, right value) (order int, comparable bool) {
	a, b := number(left), number(right)
	if a != nil && b != nil {
		return a.Cmp(b), true
	}
	s, okLeft := left["S"].(string)
	t, okRight := right["S"].(string)
	return cmp.Compare(s, t), okLeft && okRight
}

// number returns the number of a value; nil if the value is not a number.
func number(v value) *big.Rat {
	text, ok := v["N"].(string)
	if !ok {
		return nil
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return n
}

// name returns the attribute that the next token names.
func (e *expression) name() string {
	t := e.take()
	switch {
	case strings.HasPrefix(t, "#"):
		if name, known := e.names[t]; known {
			return name
		}
		e.refuse(t)
	case t == "" || strings.HasPrefix(t, ":") || !regexp.MustCompile(`^[A-Za-z_]`).MatchString(t):
		e.refuse(t)
	}
	return t
}

// operand reads a value, an attribute or if_not_exists; nil for a missing attribute.
func (e *expression) operand() value {
	if strings.HasPrefix(e.next(), ":") {
		t := e.take()
		v, known := e.values[t]
		if !known {
			e.refuse(t)
		}
		return v
	}
	if e.accept("if_not_exists") {
		e.expect("(")
		own := e.item[e.name()]
		e.expect(",")
		other := e.operand()
		e.expect(")")
		if own != nil {
			return own
		}
		return other
	}
	return e.item[e.name()]
}

// update returns the item with the changes of an update expression, and the attributes that were
// set.
func (e *expression) update(text string) (next, changed item, err error) {
	next, changed = maps.Clone(e.item), item{}
	if next == nil {
		next = item{}
	}
	e.begin(text)
	for e.next() != "" {
		switch {
		case e.accept("SET"):
			for again := true; again; again = e.accept(",") {
				name := e.name()
				e.expect("=")
				changed[name] = e.sum()
				next[name] = changed[name]
			}
		case e.accept("REMOVE"):
			for again := true; again; again = e.accept(",") {
				delete(next, e.name())
			}
		default:
			e.refuse(e.next())
		}
	}
	return next, changed, e.end()
}

// sum reads what SET assigns: an operand, or two that are added or subtracted.
func (e *expression) sum() value {
	left := e.operand()
	sign := e.next()
	if sign != "+" && sign != "-" {
		if left == nil && e.err == nil {
			e.err = invalid("an attribute that does not exist cannot be the value of another")
		}
		return left
	}
	e.take()
	a, b := number(left), number(e.operand())
	if a == nil || b == nil {
		e.refuse(sign)
		return nil
	}
	if sign == "-" {
		b.Neg(b)
	}
	total := a.Add(a, b)
	if total.IsInt() {
		return value{"N": total.Num().String()}
	}
	exact, _ := total.FloatPrec()
	return value{"N": total.FloatString(exact)}
}
