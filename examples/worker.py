# A worker for reprise run --worker: put your work in place of this one.
import json, sys

def work(body):
    order = json.loads(body)
    print("shipping", order["id"], file=sys.stderr)  # not on standard output

for line in sys.stdin:
    message = json.loads(line)
    answer = {"id": message["id"]}
    try:
        work(message["body"])
    except ValueError as error:
        answer |= {"result": "permanent", "error": str(error)}
    except Exception as error:
        answer |= {"error": str(error)}
    print(json.dumps(answer), flush=True)
