package template_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

var update = flag.Bool("update", false, "write the golden files")

// templates are the files that are read whole; beside each is what is read.
const templates = "testdata/*.*"

func options(file string) template.Options {
	return template.Options{
		File: file, Region: "eu-west-1", AccountID: "000000000000",
		QueueURL: func(name string) string { return "http://sqs/000000000000/" + name },
	}
}

// TestLoad holds what is read of whole templates to golden files.
func TestLoad(t *testing.T) {
	files, err := filepath.Glob(templates)
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := template.Load(source, options(filepath.Base(file)))
			if err != nil {
				t.Fatalf("Load: %v", err)
			}
			var got strings.Builder
			for _, f := range loaded.Warnings {
				got.WriteString(f.String() + "\n")
			}
			loaded.Warnings = nil
			encoder := json.NewEncoder(&got)
			encoder.SetIndent("", "  ")
			if err := encoder.Encode(loaded); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata/golden", filepath.Base(file)+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("Load (-want +got; -update accepts):\n%s", diff)
			}
		})
	}
}

// TestFixturesAreTemplates: what the golden files hold is what AWS would take, says
// its own linter.
func TestFixturesAreTemplates(t *testing.T) {
	if _, err := exec.LookPath("cfn-lint"); err != nil {
		t.Skip("skipped: cfn-lint is not installed")
	}
	files, err := filepath.Glob(templates)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cfn-lint", append([]string{"--non-zero-exit-code", "error", "--"}, files...)...).CombinedOutput()
	if err != nil {
		t.Errorf("cfn-lint: %v\n%s", err, out)
	}
}

// TestParameters: those given win, are checked, and are known.
func TestParameters(t *testing.T) {
	const source = `
Parameters:
  Size: {Type: Number, Default: 10, MinValue: 1, MaxValue: 100}
  Name: {Type: String, AllowedPattern: '[a-z]+', MaxLength: 4}
  Key: {Type: 'AWS::SSM::Parameter::Value<String>', Default: /a/b}
  Secret: {Type: String, NoEcho: true, MinValue: 9, MaxLength: 8, Default: none}
Resources:
  Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub '${Name}-${Key}', VisibilityTimeout: !Ref Size}}
`
	for _, test := range []struct {
		parameters map[string]string
		want       string // of the error; empty: the queue is abc-k
	}{
		{map[string]string{"Name": "abc", "Key": "k"}, ""},
		{map[string]string{"Key": "k"}, "t.yaml:4: parameter Name: it has no value: pass --param Name=VALUE, or give it a Default"},
		{map[string]string{"Name": "abc"}, `t.yaml:5: parameter Key: its value is in AWS's parameter store under "/a/b": pass --param Key=VALUE`},
		{map[string]string{"Name": "ABC", "Key": "k"}, `t.yaml:4: parameter Name: "ABC" does not match the AllowedPattern [a-z]+: pass another`},
		{map[string]string{"Name": "abcde", "Key": "k"}, `t.yaml:4: parameter Name: "abcde" is beyond its MaxLength of 4: pass another`},
		{map[string]string{"Name": "abc", "Key": "k", "Size": "101"}, `t.yaml:3: parameter Size: "101" is beyond its MaxValue of 100: pass another`},
		{map[string]string{"Name": "abc", "Key": "k", "Secret": "hunter2-hunter2"}, `t.yaml:6: parameter Secret: the value is beyond its MaxLength of 8: pass another`},
		{map[string]string{"Name": "abc", "Key": "k", "Size": "ten"}, `t.yaml:3: parameter Size: "ten" is not a number: pass one`},
		{map[string]string{"Name": "abc", "Key": "k", "Sise": "1"}, `t.yaml: there is no parameter "Sise" (Size?): correct --param`},
	} {
		o := options("t.yaml")
		o.Parameters = test.parameters
		loaded, err := template.Load([]byte(source), o)
		got := ""
		if err != nil {
			got = err.Error()
		} else if name := loaded.Queues[0].Name; name != "abc-k" {
			t.Errorf("%v: the queue is %q", test.parameters, name)
		}
		if got != test.want {
			t.Errorf("%v: Load = %q, want %q", test.parameters, got, test.want)
		}
	}
}

// FuzzLoad: whatever the text, there is a template or a reason with a text, and the
// template's parts fit together.
func FuzzLoad(f *testing.F) {
	// Small ones: the fuzzer spends minutes on making large ones smaller.
	for _, seed := range []string{
		"{Parameters: {A: {Type: Number, Default: 3}}, Resources: {Q: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: !Ref A}}}}",
		`{"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::Join": ["-", ["a", {"Ref": "AWS::Region"}]]}}}}}`,
		"Resources: {A: {Type: AWS::SQS::Queue, Properties: {QueueName: !Ref A}}}",
		"Resources: {A: {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub ['${x}${x}', {x: !Sub '${A}'}]}}}",
		"Conditions: {C: !Or [!Condition D, !Equals [a, a]], D: !Not [!Condition C]}",
		"Resources:\n  " + strings.TrimSpace(mapped("BatchSize: 1", "VisibilityTimeout: 60")) + "\nTransform: AWS::Serverless-2016-10-31",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if survey, err := template.LoadSurvey(source, options("f.yaml")); err == nil {
			for _, q := range survey.Queues {
				if q.Name == "" && q.ID != "" {
					t.Errorf("queue %s has no name", q.ID)
				}
			}
		}
		loaded, err := template.Load(source, options("f.yaml"))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if line == "" {
					t.Error("a reason is empty")
				}
			}
			return
		}
		queues := make(map[string]bool)
		for _, q := range loaded.Queues {
			queues[q.Name] = true
		}
		for _, m := range loaded.Mappings {
			if !queues[m.Queue] {
				t.Errorf("mapping %s is of the queue %q, which is none", m.ID, m.Queue)
			}
		}
	})
}

// TestCDK: what the CDK writes is run from its assets, and asks for nothing that it
// does not use.
func TestCDK(t *testing.T) {
	const source = `{
 "Resources": {
  "Handler886CB40B": {
   "Type": "AWS::Lambda::Function",
   "Properties": {
    "Code": {"S3Bucket": {"Fn::Sub": "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"}, "S3Key": "6f3c.zip"},
    "Handler": "bootstrap", "Runtime": "provided.al2023", "Role": {"Fn::GetAtt": ["Role", "Arn"]}
   },
   "Metadata": {"aws:cdk:path": "Stack/Handler/Resource", "aws:asset:path": "asset.6f3c", "aws:asset:is-bundled": false, "aws:asset:property": "Code"}
  },
  "CDKMetadata": {"Type": "AWS::CDK::Metadata", "Properties": {"Analytics": "v2:deflate64:x"}}
 },
 "Parameters": {"BootstrapVersion": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/cdk-bootstrap/hnb659fds/version"}},
 "Rules": {"CheckBootstrapVersion": {"Assertions": []}}
}`
	loaded, err := template.Load([]byte(source), options("stack.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	if path := loaded.Functions[0].Code.Path; path != "asset.6f3c" {
		t.Errorf("the code is in %q", path)
	}
}
