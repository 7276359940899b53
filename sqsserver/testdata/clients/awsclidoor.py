"""Calls SQS through the AWS CLI, of which one process serves many commands: reads
requests as lines of JSON, {"action", "input"}, and writes, for each, a line of JSON
with "reply", or "code" and "message", or "problem" for what never reached the
server."""

import contextlib
import io
import json
import re
import sys

from awscli.clidriver import create_clidriver
from botocore import xform_name

ERROR = re.compile(r"An error occurred \((.*?)\) when calling the \w+ operation(?: \(.*?\))?: (.*)", re.S)
driver = create_clidriver()


def run(action, text):
    command = ["sqs", xform_name(action, "-"), "--cli-input-json", text]
    options = ["--endpoint-url", sys.argv[1], "--region", "us-east-1", "--output", "json"]
    out, problem = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(problem):
        try:
            status = driver.main(command + options)
        except SystemExit as e:
            status = e.code
    if status == 0:
        return {"reply": json.loads(out.getvalue() or "{}")}
    found = ERROR.search(problem.getvalue())
    if found:
        return {"code": found[1], "message": found[2].removesuffix("\n")}
    return {"problem": problem.getvalue()}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(run(request["action"], json.dumps(request["input"]))), flush=True)
