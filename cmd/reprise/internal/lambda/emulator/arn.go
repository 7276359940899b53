package emulator

import (
	"fmt"
	"regexp"
	"strings"
)

// latest is the only version that a local function has.
const latest = "$LATEST"

// The forms of region and account in the ARN of a function, as in the service's model.
const (
	regionPattern  = `(?:eusc-)?[a-z]{2}(?:-gov|-iso[a-z]?)?-[a-z]+-\d`
	accountPattern = `\d{12}`
)

// invokable matches what the Invoke API accepts as a function's name: the name, its ARN or a part
// of it, each with or without a qualifier. It is the pattern of NamespacedFunctionName in the
// service's model.
var invokable = regexp.MustCompile(`^(?:arn:aws[a-zA-Z-]*:lambda:)?(?:(` + regionPattern + `):)?(?:(` + accountPattern + `):)?(?:function:)?([a-zA-Z0-9-_.]+)(?::(\$LATEST|[a-zA-Z0-9-_]+))?$`)

// functionARN is the ARN of the function called name, without a qualifier.
func (c *Config) functionARN(name string) string {
	return "arn:aws:lambda:" + c.Region + ":" + c.AccountID + ":function:" + name
}

// resolve returns the function that a caller means, and the ARN that it invokes.
func (c *Config) resolve(given, qualifier string) (name, arn string, err error) {
	parts := invokable.FindStringSubmatch(given)
	if parts == nil || len(given) > 256 {
		return "", "", &Error{Status: 400, Code: "ValidationException",
			Message: fmt.Sprintf("the function name %q is neither a name nor an ARN of a function: pass one like orders or %s", given, c.functionARN("orders"))}
	}
	region, account, name := parts[1], parts[2], parts[3]
	switch {
	case parts[4] != "" && qualifier != "" && parts[4] != qualifier:
		return "", "", &Error{Status: 400, Code: "InvalidParameterValueException",
			Message: "The derived qualifier from the function name does not match the specified qualifier."}
	case qualifier == "":
		qualifier = parts[4]
	}
	arn = c.functionARN(name)
	if qualifier != "" {
		arn += ":" + qualifier
	}
	switch {
	case region != "" && region != c.Region:
		return "", "", notFound(fmt.Sprintf("Functions from '%s' are not reachable in this region ('%s')", region, c.Region))
	case account != "" && account != c.AccountID:
		return "", "", notFound(fmt.Sprintf("Function not found: %s (the local account is %s)", given, c.AccountID))
	case qualifier != "" && qualifier != latest:
		return "", "", notFound("Function not found: " + arn)
	}
	return name, arn, nil
}

func notFound(message string) *Error {
	return &Error{Status: 404, Code: "ResourceNotFoundException", Message: message}
}

// destination is the target that the ARN of a destination names.
type destination struct {
	service string // "sqs" or "lambda"
	name    string // of the queue, or of the function
}

// parseDestination reads the ARN of a destination that is supported here.
func parseDestination(arn string) (destination, error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" {
		return destination{}, fmt.Errorf("%q is not an ARN: pass the ARN of a queue or of a function", arn)
	}
	d := destination{service: parts[2], name: parts[5]}
	switch {
	case d.service == "sqs" && strings.HasSuffix(d.name, ".fifo"):
		return d, fmt.Errorf("%q is a FIFO queue, which Lambda does not send to: name a standard one", arn)
	case d.service == "sqs":
		return d, nil
	case d.service == "lambda":
		name, found := strings.CutPrefix(d.name, "function:")
		if !found {
			return d, fmt.Errorf("%q names no function", arn)
		}
		d.name, _, _ = strings.Cut(name, ":")
		return d, nil
	}
	return d, fmt.Errorf("%q is a destination of service %s, and only queues and functions run locally: name one of those, or leave it out", arn, d.service)
}
