"""Calls SQS through boto3: reads requests as lines of JSON, {"action", "input"},
and writes, for each, a line of JSON with "reply", or "code" and "message", or
"problem" for what never reached the server."""

import base64
import json
import sys

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError


def decode(value):
    """Blobs are base64 in JSON and bytes in boto3."""
    if isinstance(value, list):
        return [decode(v) for v in value]
    if isinstance(value, dict):
        return {
            k: base64.b64decode(v) if k == "BinaryValue" else decode(v)
            for k, v in value.items()
        }
    return value


def encode(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(type(value))


client = boto3.client(
    "sqs",
    endpoint_url=sys.argv[1],
    region_name="us-east-1",
    aws_access_key_id="AKID",
    aws_secret_access_key="secret",
    config=Config(retries={"total_max_attempts": 1}),
)
for line in sys.stdin:
    request = json.loads(line)
    try:
        reply = getattr(client, xform_name(request["action"]))(**decode(request["input"]))
        reply.pop("ResponseMetadata")
        answer = {"reply": reply}
    except ClientError as e:
        answer = {"code": e.response["Error"]["Code"], "message": e.response["Error"]["Message"]}
    except (BotoCoreError, TypeError) as e:
        answer = {"problem": str(e)}
    print(json.dumps(answer, default=encode), flush=True)
