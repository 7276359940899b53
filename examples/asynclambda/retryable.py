# retryable.py
import functools


def retryable(handler):
    """handler sees the payload that was sent, and never the envelope of a retry.

    context.attempt is 1 for the first run, and context.first_failed when Lambda
    first gave the event up, in seconds since 1970.
    """

    def counts(n):
        return type(n) is int and 0 <= n < 2**53

    @functools.wraps(handler)
    def unwrapped(event, context):
        context.attempt, context.first_failed = 1, None
        if isinstance(event, dict) and event.keys() == {"_retry_metadata", "_original_payload"}:
            retry = event["_retry_metadata"]
            if isinstance(retry, dict) and counts(retry.get("attempt")) and counts(retry.get("initial_timestamp")):
                context.attempt, context.first_failed = retry["attempt"] + 1, retry["initial_timestamp"]
                event = event["_original_payload"]
        return handler(event, context)

    return unwrapped
