"""Creates a stack on moto, and prints as JSON what AWS would say of its parts.

    python3 create.py TEMPLATE NAME=VALUE...
"""

import ast
import io
import json
import os
import sys
import zipfile

os.environ.update(AWS_DEFAULT_REGION="eu-central-1", AWS_ACCESS_KEY_ID="any", AWS_SECRET_ACCESS_KEY="any")

import boto3
from moto import mock_aws


def archive():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("bootstrap", "no binary")
    return out.getvalue()


def created(path, parameters):
    boto3.client("s3").create_bucket(Bucket="code", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    boto3.client("s3").put_object(Bucket="code", Key="handler.zip", Body=archive())
    iam, cloudformation = boto3.client("iam"), boto3.client("cloudformation")
    iam.create_role(RoleName="flaky-role", AssumeRolePolicyDocument="{}")
    parameters = {"CodeBucket": "code", "CodeKey": "handler.zip"} | parameters
    cloudformation.create_stack(
        StackName="retries", TemplateBody=open(path).read(), Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()])
    stack = cloudformation.describe_stacks(StackName="retries")["Stacks"][0]
    ids = {r["LogicalResourceId"]: r["PhysicalResourceId"]  # of what moto has made
           for r in cloudformation.describe_stack_resources(StackName="retries")["StackResources"] if "LogicalResourceId" in r}
    sqs, functions = boto3.client("sqs"), boto3.client("lambda")
    attributes = {name: sqs.get_queue_attributes(QueueUrl=ids[name], AttributeNames=["All"])["Attributes"] for name in ("RetryQueue", "DeadLetterQueue")}
    handler = functions.get_function_configuration(FunctionName=ids["RetryHandler"])
    mapping = functions.list_event_source_mappings(FunctionName=ids["RetryHandler"])["EventSourceMappings"][0]
    role = handler["Role"].rsplit("/", 1)[1]
    policy = iam.get_role_policy(RoleName=role, PolicyName=iam.list_role_policies(RoleName=role)["PolicyNames"][0])["PolicyDocument"]
    policy = ast.literal_eval(policy) if isinstance(policy, str) else policy  # moto writes it as Python does
    names = {a["QueueArn"]: name for name, a in attributes.items()} | {a: name for name, a in ids.items() if name.endswith(("Queue", "Table"))}
    return {
        "status": stack["StackStatus"],
        "retry": {k: attributes["RetryQueue"][k] for k in ("VisibilityTimeout", "MessageRetentionPeriod")}
        | {"maxReceiveCount": json.loads(attributes["RetryQueue"]["RedrivePolicy"])["maxReceiveCount"],
           "deadLetterTarget": names[json.loads(attributes["RetryQueue"]["RedrivePolicy"])["deadLetterTargetArn"]]},
        "dead": {k: attributes["DeadLetterQueue"][k] for k in ("MessageRetentionPeriod",)},
        "handler": {k: handler[k] for k in ("Runtime", "Handler", "Timeout", "MemorySize")}
        | {"Environment": {k: names.get(v, str(v)) for k, v in handler["Environment"]["Variables"].items() if v}},
        "mapping": {k: mapping[k] for k in ("BatchSize", "FunctionResponseTypes", "ScalingConfig")} | {"Queue": names[mapping["EventSourceArn"]]},
        "permissions": {s["Sid"]: s["Action"] for s in policy["Statement"] if s},  # moto leaves nulls where there is no value
        "destination roles": [p["PolicyName"].split("-")[1]
                              for p in iam.list_attached_role_policies(RoleName="flaky-role")["AttachedPolicies"]],
        "table": boto3.client("dynamodb").list_tables()["TableNames"] != [],
        "outputs": sorted(o["OutputKey"] for o in stack["Outputs"]),
    }


with mock_aws():
    json.dump(created(sys.argv[1], dict(p.split("=", 1) for p in sys.argv[2:])), sys.stdout, indent=1)
