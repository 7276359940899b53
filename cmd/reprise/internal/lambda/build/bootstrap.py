"""A small Lambda runtime for Python, used where AWS's own, awslambdaric, cannot be
imported: it loads the handler that _HANDLER names, takes one event after the other
from the Runtime API, and reports what the handler returns or raises."""

import http.client
import importlib
import json
import logging
import os
import sys
import time
import traceback

API = "/2018-06-01/runtime"


class Context:
    """What a handler is given beside the event."""

    def __init__(self, headers):
        self.aws_request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        self.invoked_function_arn = headers["Lambda-Runtime-Invoked-Function-Arn"]
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = os.environ.get("AWS_LAMBDA_LOG_GROUP_NAME")
        self.log_stream_name = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
        self.identity = None
        client = headers.get("Lambda-Runtime-Client-Context")
        self.client_context = json.loads(client) if client else None
        self._deadline = int(headers["Lambda-Runtime-Deadline-Ms"])

    def get_remaining_time_in_millis(self):
        return max(0, self._deadline - int(time.time() * 1000))


class RequestID(logging.Filter):
    """Gives every record of the log the id of the request, as Lambda does."""

    current = ""

    def filter(self, record):
        record.aws_request_id = RequestID.current
        return True


def set_up_logging():
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter(
        "[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s", "%Y-%m-%dT%H:%M:%S"))
    handler.formatter.converter = time.gmtime
    handler.addFilter(RequestID())
    logging.getLogger().addHandler(handler)


class Fault(Exception):
    """What Lambda itself says of a function that cannot be loaded."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = "Runtime." + kind


def load(name):
    module, _, function = name.rpartition(".")
    if not module:
        raise Fault("MalformedHandlerName", "Bad handler '%s': not of the form module.function" % name)
    sys.path.insert(0, os.getcwd())
    try:
        loaded = importlib.import_module(module.replace("/", "."))
    except ImportError as error:
        raise Fault("ImportModuleError", "Unable to import module '%s': %s" % (module, error)) from None
    except SyntaxError as error:
        raise Fault("UserCodeSyntaxError", "Syntax error in module '%s': %s" % (module, error)) from None
    if not hasattr(loaded, function):
        raise Fault("HandlerNotFound", "Handler '%s' missing on module '%s'" % (function, module))
    return getattr(loaded, function)


def failure(error, request_id=None):
    """The form in which Lambda reports an exception."""
    frames = traceback.format_list(f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__)
    name = error.kind if isinstance(error, Fault) else type(error).__name__
    print("[ERROR] %s: %s\nTraceback (most recent call last):\n%s" % (name, error, "".join(frames)), end="", flush=True)
    report = {"errorMessage": str(error), "errorType": name, "stackTrace": frames}
    if request_id:
        report["requestId"] = request_id
    return report


class Runtime:
    def __init__(self):
        self.connection = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])

    def call(self, method, path, body=None, error_type=None):
        headers = {"Content-Type": "application/json"}
        if error_type:
            headers["Lambda-Runtime-Function-Error-Type"] = error_type
        self.connection.request(method, API + path, body, headers)
        response = self.connection.getresponse()
        return response.headers, response.read()

    def fail(self, path, report):
        self.call("POST", path, json.dumps(report).encode(), report["errorType"])

    def serve(self, handler):
        headers, event = self.call("GET", "/invocation/next")
        context = Context(headers)
        request = "/invocation/" + context.aws_request_id
        RequestID.current = context.aws_request_id
        os.environ["_X_AMZN_TRACE_ID"] = headers.get("Lambda-Runtime-Trace-Id", "")
        try:
            result = handler(json.loads(event), context)
        except Exception as error:
            self.fail(request + "/error", failure(error, context.aws_request_id))
            return
        try:
            reply = json.dumps(result).encode()
        except (TypeError, ValueError) as error:
            report = failure(error, context.aws_request_id)
            report["errorType"] = "Runtime.MarshalError"
            report["errorMessage"] = "Unable to marshal response: %s" % error
            self.fail(request + "/error", report)
            return
        self.call("POST", request + "/response", reply)


def main():
    set_up_logging()
    runtime = Runtime()
    try:
        handler = load(os.environ["_HANDLER"])
    except BaseException as error:
        runtime.fail("/init/error", failure(error))
        sys.exit(1)
    while True:
        runtime.serve(handler)


main()
