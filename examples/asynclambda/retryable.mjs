// retryable.mjs
const counts = (n) => Number.isSafeInteger(n) && n >= 0;
const members = (event) => Object.keys(event ?? {}).sort().join() === "_original_payload,_retry_metadata";

/**
 * handler sees the payload that was sent, and never the envelope of a retry.
 * context.attempt is 1 for the first run, and context.firstFailed when Lambda
 * first gave the event up, in seconds since 1970.
 */
export const retryable = (handler) => (event, context) => {
  const retry = members(event) ? event._retry_metadata : undefined;
  const wrapped = counts(retry?.attempt) && counts(retry?.initial_timestamp);
  context.attempt = wrapped ? retry.attempt + 1 : 1;
  context.firstFailed = wrapped ? retry.initial_timestamp : undefined;
  return handler(wrapped ? event._original_payload : event, context);
};
