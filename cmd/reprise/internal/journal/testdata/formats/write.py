"""Writes the data directory of a server, with some of everything, as a zip file:

    python3 write.py PROGRAM records-N.zip

PROGRAM is the reprise whose format is to be kept. The server is stopped once, so that there are
tables, and killed in the end, so that there are logs to replay. Needs boto3.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

import boto3

program, target = sys.argv[1:]
folder = tempfile.mkdtemp()
data, port = os.path.join(folder, "data"), "19377"
os.mkdir(data)


def serve():
    process = subprocess.Popen([program, "serve", "--data", data, "--addr", "127.0.0.1:" + port])
    client = boto3.client("sqs", endpoint_url="http://127.0.0.1:" + port, region_name="us-east-1",
                          aws_access_key_id="any", aws_secret_access_key="thing")
    for _ in range(100):
        try:
            client.list_queues()
            return process, client
        except Exception:
            time.sleep(0.1)
    sys.exit("the server does not answer")


def url(name):
    return "http://127.0.0.1:%s/000000000000/%s" % (port, name)


def receive(sqs, name, timeout):
    return sqs.receive_message(QueueUrl=url(name), MaxNumberOfMessages=1, VisibilityTimeout=timeout).get("Messages", [])


process, sqs = serve()
sqs.create_queue(QueueName="gone")
sqs.delete_queue(QueueUrl=url("gone"))
sqs.create_queue(QueueName="orders-dead", Attributes={"MessageRetentionPeriod": "1209600"})
sqs.create_queue(QueueName="orders", tags={"team": "a"}, Attributes={
    "VisibilityTimeout": "60", "MessageRetentionPeriod": "1209600",
    "RedrivePolicy": '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dead","maxReceiveCount":"2"}'})
sqs.create_queue(QueueName="jobs.fifo", Attributes={
    "FifoQueue": "true", "ContentBasedDeduplication": "true", "MessageRetentionPeriod": "1209600"})
sqs.send_message(QueueUrl=url("orders"), MessageBody="a dead letter")
receive(sqs, "orders", 0)
receive(sqs, "orders", 0)
receive(sqs, "orders", 0)  # finds nothing, and moves it
sqs.send_message(QueueUrl=url("orders"), MessageBody="done")
sqs.delete_message(QueueUrl=url("orders"), ReceiptHandle=receive(sqs, "orders", 60)[0]["ReceiptHandle"])
sqs.send_message(QueueUrl=url("orders"), MessageBody="in flight")
receive(sqs, "orders", 43200)
sqs.send_message(QueueUrl=url("orders"), MessageBody='{"json": "with \\"quotes\\",\\n\\u00fc and more"}', MessageAttributes={
    "text": {"DataType": "String", "StringValue": "\u00fc"},
    "number": {"DataType": "Number.int", "StringValue": "42"},
    "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}})
sqs.send_message(QueueUrl=url("orders"), MessageBody="delayed", DelaySeconds=900)
sqs.send_message(QueueUrl=url("orders"), MessageBody="large " + "x" * 4000)
sqs.send_message(QueueUrl=url("jobs.fifo"), MessageBody="first", MessageGroupId="g")
sqs.send_message(QueueUrl=url("jobs.fifo"), MessageBody="second", MessageGroupId="g", MessageDeduplicationId="2")
process.terminate()
process.wait()

process, sqs = serve()
sqs.send_message(QueueUrl=url("orders"), MessageBody='after the restart, "quoted"')
sqs.send_message(QueueUrl=url("jobs.fifo"), MessageBody="third", MessageGroupId="h")
time.sleep(1)  # what is acknowledged before it is on disk is there now
process.send_signal(signal.SIGKILL)
process.wait()

with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
    for name in sorted(os.listdir(data)):
        path = os.path.join(data, name)
        if os.path.isfile(path) and name != "LOCK":
            archive.write(path, name)
