package emulator

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
)

// inherited are the variables of this process that every instance gets: the paths of programs and
// temporary files, and what Windows requires. HOME is left out: the user's keys and settings are
// there, and Lambda has no HOME.
var inherited = []string{"PATH", "TMPDIR", "SystemRoot", "TEMP"}

// runtimeAPIVariable has the address of an instance's Runtime API. Each instance has an address
// of its own, so the variable also identifies the processes that it starts.
const runtimeAPIVariable = "AWS_LAMBDA_RUNTIME_API"

// environment returns the variables of a process whose Runtime API is at api.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
func (i *instance) environment(api string) []string {
	cfg, f := &i.pool.lambda.cfg, &i.pool.function
	env := map[string]string{
		"LANG":                  "en_US.UTF-8",
		"TZ":                    ":UTC",
		"AWS_ACCESS_KEY_ID":     "local",
		"AWS_SECRET_ACCESS_KEY": "local",
		"AWS_SESSION_TOKEN":     "local",
	}
	for _, name := range slices.Concat(inherited, cfg.PassEnvironment) {
		if value, set := os.LookupEnv(name); set {
			env[name] = value
		}
	}
	maps.Copy(env, cfg.Environment)
	maps.Copy(env, f.Environment)
	maps.Copy(env, map[string]string{
		"_HANDLER":                        f.Handler,
		"AWS_REGION":                      cfg.Region,
		"AWS_DEFAULT_REGION":              cfg.Region,
		"AWS_EXECUTION_ENV":               "AWS_Lambda_" + f.Runtime,
		"AWS_LAMBDA_FUNCTION_NAME":        f.Name,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(f.MemorySize),
		"AWS_LAMBDA_FUNCTION_VERSION":     latest,
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + f.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      fmt.Sprintf("[%s]%d", latest, i.number),
		runtimeAPIVariable:                api,
		"LAMBDA_TASK_ROOT":                f.Dir,
		"LAMBDA_RUNTIME_DIR":              f.Dir,
	})
	if f.PerInstance > 1 {
		env["AWS_LAMBDA_MAX_CONCURRENCY"] = strconv.Itoa(f.PerInstance)
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
