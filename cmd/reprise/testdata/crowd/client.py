"""A client of the crowd: reads requests as lines of JSON, {"n", "action", "input"}, calls SQS through boto3, and writes
what it does and is told to its log, and the answer to its output. Arguments: endpoint, log."""

import base64
import json
import sys
import time

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError


def decode(value):
    """Blobs are base64 in JSON and bytes in boto3."""
    if isinstance(value, list):
        return [decode(v) for v in value]
    if isinstance(value, dict):
        return {k: base64.b64decode(v) if k == "BinaryValue" else decode(v) for k, v in value.items()}
    return value


def encode(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(type(value))


client = boto3.client(
    "sqs",
    endpoint_url=sys.argv[1],
    region_name="us-east-1",
    aws_access_key_id="any",
    aws_secret_access_key="any",
    config=Config(retries={"total_max_attempts": 1}),
)
log = open(sys.argv[2], "a", buffering=1, encoding="utf-8")
for line in sys.stdin:
    request = json.loads(line)
    log.write(json.dumps({"n": request["n"], "at": time.time_ns(), "action": request["action"], "input": request["input"]}) + "\n")
    try:
        reply = getattr(client, xform_name(request["action"]))(**decode(request["input"]))
        reply.pop("ResponseMetadata")
        answer = {"reply": reply}
    except ClientError as e:
        answer = {
            "code": e.response["Error"]["Code"],
            "message": e.response["Error"]["Message"],
            "status": e.response["ResponseMetadata"]["HTTPStatusCode"],
        }
    except BotoCoreError as e:
        answer = {"code": type(e).__name__, "message": str(e), "status": 0}
    text = json.dumps({"n": request["n"], "at": time.time_ns(), **answer}, default=encode)
    log.write(text + "\n")
    print(text, flush=True)
