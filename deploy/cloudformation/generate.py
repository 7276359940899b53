"""Translates deploy/sam/template.yaml to plain CloudFormation.

    python3 deploy/cloudformation/generate.py           writes template.yaml beside this file
    python3 deploy/cloudformation/generate.py --check   fails if that would change it

It needs aws-sam-translator. What `sam build` and `sam deploy` do with the code is
left to whoever deploys: parameters say where the archive is.
"""

import os
import pathlib
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")  # the translator asks for one

import yaml
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

HERE = pathlib.Path(__file__).parent
SOURCE = HERE.parent / "sam" / "template.yaml"
TARGET = HERE / "template.yaml"

HEADER = """\
# Written by generate.py from ../sam/template.yaml; do not edit. That file has the
# comments, and docs/lambda.md says how to deploy this one.
"""

CODE = {
    "CodeBucket": {"Type": "String", "Description": "The bucket with the handler's archive."},
    "CodeKey": {"Type": "String", "Description": "The key of that archive, a zip file with the binary bootstrap."},
}


class Dumper(yaml.SafeDumper):
    """Writes no anchors: they would couple what happens to be the same."""

    def ignore_aliases(self, data):
        return True


def generate():
    template = yaml_parse(SOURCE.read_text())
    template["Parameters"] = CODE | template["Parameters"]
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = {"Bucket": {"Ref": "CodeBucket"}, "Key": {"Ref": "CodeKey"}}
            del resource["Metadata"]  # how SAM builds it
    plain = Translator({}, Parser()).translate(template, {})
    for resource in plain["Resources"].values():
        resource.pop("Metadata", None)
        tags = resource["Properties"].get("Tags", [])
        if tags == [{"Key": "lambda:createdBy", "Value": "SAM"}]:
            del resource["Properties"]["Tags"]  # it was not
    return HEADER + yaml.dump(plain, Dumper=Dumper, sort_keys=False, width=120, allow_unicode=True)


text = generate()
if sys.argv[1:] == ["--check"]:
    if TARGET.read_text() != text:
        sys.exit("deploy/cloudformation/template.yaml is not what deploy/sam/template.yaml says: run generate.py, and commit what it writes")
else:
    TARGET.write_text(text)
