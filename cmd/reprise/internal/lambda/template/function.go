package template

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	noLayers   = "layers are not run here: put their content into the function's own code"
	noImages   = "container images are not run here: give the function a zip package (CodeUri, Handler, Runtime)"
	noFiles    = "shared file systems are not mounted here: make the property depend on a condition"
	noVPC      = "there is no VPC here: the function has the network of this machine"
	noAlias    = "there are no versions and aliases here: every invoke runs the code as it is"
	noDurable  = "durable execution is not run here: make the property depend on a condition"
	noURL      = "there are no function URLs here: invoke the function"
	noSnapshot = "there are no snapshots here: the function starts as usual"
	noTenancy  = "tenants are not kept apart here: make the property depend on a condition"
)

// functionSchema are the properties of functions of both types.
var functionSchema = schema{
	"FunctionName": raw, "Handler": used, "Runtime": used, "Architectures": used, "Environment": used,
	"Timeout": used, "MemorySize": used, "ReservedConcurrentExecutions": used, "PackageType": used,
	"Description": harmless, "Role": harmless, "Tags": harmless, "CodeSigningConfigArn": harmless, "KmsKeyArn": harmless,
	"RuntimeManagementConfig": harmless, "LoggingConfig": harmless, "RecursiveLoop": harmless,
	"PublishToLatestPublished": harmless,
	"EphemeralStorage":         warned("the size of /tmp is that of this machine's"),
	"VpcConfig":                warned(noVPC), "SnapStart": warned(noSnapshot), "FunctionScalingConfig": warned(noAlias), "CapacityProviderConfig": warned("there are no managed instances here: the function runs as usual"),
	"Layers": refused(noLayers), "ImageConfig": refused(noImages), "FileSystemConfigs": refused(noFiles),
	"DurableConfig": refused(noDurable), "TenancyConfig": refused(noTenancy),
}

var samFunctionSchema = functionSchema.with(schema{
	"CodeUri": used, "InlineCode": used, "EventInvokeConfig": used, "DeadLetterQueue": used, "Events": raw,
	"Policies": harmless, "PermissionsBoundary": harmless, "RolePath": harmless, "AssumeRolePolicyDocument": harmless,
	"PropagateTags": harmless, "Tracing": harmless, "SourceKMSKeyArn": harmless,
	"AutoPublishCodeSha256": harmless, "AutoPublishAliasAllProperties": harmless, "VersionDescription": harmless,
	"DeploymentPreference": harmless, "VersionDeletionPolicy": harmless,
	"AutoPublishAlias": warned(noAlias), "ProvisionedConcurrencyConfig": warned(noAlias), "FunctionUrlConfig": warned(noURL),
	"ImageUri": refused(noImages),
})

var lambdaFunctionSchema = functionSchema.with(schema{"Code": raw, "DeadLetterConfig": used, "TracingConfig": harmless})

// with returns the union of two schemas.
func (s schema) with(more schema) schema {
	result := make(schema, len(s)+len(more))
	for _, each := range []schema{s, more} {
		for name, t := range each {
			result[name] = t
		}
	}
	return result
}

// function reads a function without its invokes, which name queues and functions.
func (l *loader) function(r *resource) {
	p := r.place()
	if r.kind == samFunctionType {
		r.opened = l.open(p, r.properties, samFunctionSchema)
	} else {
		r.opened = l.open(p, r.properties, lambdaFunctionSchema)
	}
	f := Function{ID: r.id, Name: l.nameOf(r), Line: r.line, Architecture: "x86_64"}
	f.ARN = l.functionARN(f.Name)
	f.Timeout = time.Duration(l.integer(p.at("Timeout"), r.opened["Timeout"], 1, 900, 3)) * time.Second
	f.MemorySize = l.integer(p.at("MemorySize"), r.opened["MemorySize"], 128, 32_768, 128)
	if n := r.opened["ReservedConcurrentExecutions"]; n != nil {
		reserved := l.integer(p.at("ReservedConcurrentExecutions"), n, 0, 100_000, 1)
		f.Reserved = &reserved
	}
	for _, item := range l.elements(p.at("Architectures"), r.opened["Architectures"]) {
		f.Architecture = l.choice(p.at("Architectures"), item, "x86_64", "arm64")
	}
	f.Environment = l.environment(p.at("Environment"), r.opened["Environment"])
	if l.choice(p.at("PackageType"), r.opened["PackageType"], "Zip", "Image") == "Image" {
		l.refuse(p.at("PackageType"), r.opened["PackageType"], noImages)
	} else {
		f.Handler, f.Runtime = l.handler(p, r)
		f.Code = l.code(p, r)
	}
	l.template.Functions = append(l.template.Functions, f)
}

var (
	runtimes      = regexp.MustCompile(`^(provided(\.al2|\.al2023)?|python3\.[0-9]+|nodejs[0-9]+\.x)$`)
	remedyRuntime = "functions for provided.al2023 (Go), python3.x and nodejs22.x and the like are"
)

func (l *loader) handler(p place, r *resource) (handler, runtime string) {
	handler = l.scalar(p.at("Handler"), r.opened["Handler"])
	runtime = l.scalar(p.at("Runtime"), r.opened["Runtime"])
	switch {
	case runtime == "":
		if missing(r.opened, "Runtime") {
			l.refuse(p, nil, "it has no Runtime: write one, like Runtime: provided.al2023")
		}
	case runtime == "go1.x":
		l.refuse(p.at("Runtime"), r.opened["Runtime"], "AWS has ended go1.x: write provided.al2023, and Handler: bootstrap")
	case !runtimes.MatchString(runtime):
		l.refuse(p.at("Runtime"), r.opened["Runtime"], "%s is not run here: %s", runtime, remedyRuntime)
	}
	switch {
	case missing(r.opened, "Handler"):
		l.refuse(p, nil, "it has no Handler: write one, like Handler: bootstrap")
	case leavesFolder(handler):
		// On AWS the runtimes refuse it; here it would run other code of this machine.
		l.refuse(p.at("Handler"), r.opened["Handler"], "%q leads out of the function's folder: write one that is relative to CodeUri, like app.handler", handler)
	}
	return handler, runtime
}

// leavesFolder reports whether the path of a handler is absolute or goes up, by the
// separators of any system.
func leavesFolder(handler string) bool {
	path := strings.ReplaceAll(handler, `\`, "/")
	return strings.HasPrefix(path, "/") || len(path) > 1 && path[1] == ':' || slices.Contains(strings.Split(path, "/"), "..")
}

var environmentSchema = schema{"Variables": used}

// reservedVariables are set by AWS, which refuses them in a template.
var reservedVariables = []string{
	"_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_EXECUTION_ENV", "AWS_LAMBDA_FUNCTION_NAME",
	"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_INITIALIZATION_TYPE",
	"AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME", "AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
	"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_LAMBDA_RUNTIME_API", "LAMBDA_TASK_ROOT", "LAMBDA_RUNTIME_DIR",
}

var variableName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]+$`)

// maxEnvironment is how many bytes the names and values may have in total.
const maxEnvironment = 4096

func (l *loader) environment(p place, n *node) map[string]string {
	variables := l.open(p, n, environmentSchema)["Variables"]
	p = p.at("Variables")
	if variables == nil {
		return nil
	}
	result := make(map[string]string, len(variables.members))
	size := 0
	for _, m := range variables.members {
		at := p.at(m.key)
		switch {
		case slices.Contains(reservedVariables, m.key):
			l.refuse(at, m.value, "AWS sets this variable itself: remove it, or choose another name")
		case !variableName.MatchString(m.key):
			l.refuse(at, m.value, "a variable's name is a letter and then at least one letter, digit or _: choose another")
		}
		result[m.key] = l.scalar(at, m.value)
		size += len(m.key) + len(result[m.key])
	}
	if size > maxEnvironment {
		l.refuse(p, n, "the variables have %d bytes: AWS takes %d", size, maxEnvironment)
	}
	return result
}

// assetPath is the key under which the CDK names the folder to upload, beside a Code that names a
// place in S3.
const assetPath = "aws:asset:path"

// code returns where the code is.
func (l *loader) code(p place, r *resource) Code {
	var c Code
	switch {
	case r.metadata.get(assetPath) != nil:
		c.Path = l.path(place{resource: r.id, property: "Metadata." + assetPath}, r.metadata.get(assetPath))
	case r.kind == lambdaFunctionType:
		c = l.lambdaCode(p.at("Code"), r.opened["Code"])
	case r.opened["InlineCode"] != nil:
		c.Inline = l.scalar(p.at("InlineCode"), r.opened["InlineCode"])
	default:
		c.Path = l.path(p.at("CodeUri"), r.opened["CodeUri"])
	}
	if c.Path == "" && c.Inline == "" && missing(r.opened, "CodeUri") && missing(r.opened, "Code") {
		l.refuse(p, nil, "it has no code: write CodeUri: FOLDER")
	}
	if c.Inline != "" && strings.HasPrefix(l.scalar(p, r.opened["Runtime"]), "provided") {
		l.refuse(p, nil, "code in the template is for Python and Node: write CodeUri: FOLDER")
	}
	l.buildMethod(&c, p, r.metadata)
	return c
}

var codeSchema = schema{
	"ZipFile":  used,
	"S3Bucket": refused(inS3), "S3Key": refused(inS3), "S3ObjectVersion": refused(inS3), "SourceKMSKeyArn": harmless,
	"ImageUri": refused(noImages),
}

const inS3 = "the code is in S3, from where nothing is fetched: name its folder (Code: FOLDER, which aws cloudformation package uploads)"

func (l *loader) lambdaCode(p place, n *node) Code {
	if n == nil || n.kind == scalar {
		return Code{Path: l.path(p, n)}
	}
	return Code{Inline: l.scalar(p.at("ZipFile"), l.open(p, n, codeSchema)["ZipFile"])}
}

// path returns the path of a file or folder on this machine.
func (l *loader) path(p place, n *node) string {
	switch {
	case n == nil:
		return ""
	case n.kind == mapping, strings.HasPrefix(n.text, "s3://"):
		l.refuse(p, n, inS3)
		return ""
	case strings.HasSuffix(n.text, ".zip"), strings.HasSuffix(n.text, ".jar"):
		l.refuse(p, n, "%s is an archive: name the folder that it is made of", n.text)
		return ""
	}
	return l.scalar(p, n)
}

// buildMethod reads the part of a resource's metadata that SAM reads. The rest is for other
// programs.
func (l *loader) buildMethod(c *Code, p place, metadata *node) {
	p.property = "Metadata"
	if n := metadata.get("BuildMethod"); n != nil {
		c.BuildMethod = strings.ToLower(l.scalar(p.at("BuildMethod"), n))
		switch {
		case c.BuildMethod == "makefile", c.BuildMethod == "go1.x", runtimes.MatchString(c.BuildMethod):
		default:
			l.refuse(p.at("BuildMethod"), n, "%s is not known here: write makefile, and a Makefile with the target build-FUNCTION", n.text)
		}
	}
	if n := metadata.get("WorkingDirectory"); n != nil {
		c.WorkingDir = l.scalar(p.at("WorkingDirectory"), n)
	}
	for _, name := range []string{"BuildProperties", "ContextPath", "ProjectRootDirectory"} {
		if n := metadata.get(name); n != nil {
			l.refuse(p.at(name), n, "is not known here: use BuildMethod: makefile with a WorkingDirectory")
		}
	}
}
