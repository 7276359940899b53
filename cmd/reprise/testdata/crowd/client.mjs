// A client of the crowd: reads requests as lines of JSON, {n, action, input}, calls SQS through the SDK for JavaScript, and
// writes what it does and is told to its log, and the answer to its output. Arguments: endpoint, log.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import * as sdk from "@aws-sdk/client-sqs";

const [endpoint, log] = process.argv.slice(2);
const client = new sdk.SQSClient({
  endpoint,
  region: "us-east-1",
  maxAttempts: 1,
  credentials: { accessKeyId: "any", secretAccessKey: "any" },
});

// Blobs are base64 in JSON and bytes in the SDK.
const decode = (value) =>
  Array.isArray(value)
    ? value.map(decode)
    : value && typeof value === "object"
      ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, k === "BinaryValue" ? Buffer.from(v, "base64") : decode(v)]))
      : value;
const encode = (key, value) => (key === "BinaryValue" && value ? Buffer.from(Object.values(value)).toString("base64") : value);
// The machine's clock, as the other clients read it: performance.now counts from when the process began, whatever was set since.
const now = () => Date.now() * 1e6;

for await (const line of createInterface({ input: process.stdin })) {
  const { n, action, input } = JSON.parse(line);
  appendFileSync(log, JSON.stringify({ n, at: now(), action, input }) + "\n");
  let answer;
  try {
    const { $metadata, ...reply } = await client.send(new sdk[action + "Command"](decode(input)));
    answer = { reply };
  } catch (e) {
    answer = { code: e.name, message: String(e.message), status: e.$metadata?.httpStatusCode ?? e.$response?.statusCode ?? 0 };
  }
  const text = JSON.stringify({ n, at: now(), ...answer }, encode) + "\n";
  appendFileSync(log, text);
  process.stdout.write(text);
}
