// A worker for reprise run --worker: put your handleMessage in place of this one.
import { createInterface } from "node:readline";

async function handleMessage(message) {
  const order = JSON.parse(message.Body);
  console.error("shipping", order.id); // not on standard output
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, body, attributes } = JSON.parse(line);
  const answer = { id };
  await handleMessage({ MessageId: id, Body: body, MessageAttributes: attributes }).catch((error) => {
    answer.error = String(error);
    if (error instanceof SyntaxError) answer.result = "permanent";
  });
  console.log(JSON.stringify(answer));
}
