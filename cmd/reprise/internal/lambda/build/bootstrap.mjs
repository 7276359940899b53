// A small Lambda runtime for Node, used where AWS's own, aws-lambda-ric, is not
// among the function's modules: it loads the handler that _HANDLER names, takes one
// event after the other from the Runtime API, and reports what the handler returns,
// throws or calls back with.

import { existsSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
// One connection, which is kept. Waiting for an event takes as long as it takes.
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function call(method, where, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const options = { host, port, agent, method, path: "/2018-06-01/runtime" + where, headers };
    const request = http.request(options, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => resolve({ headers: response.headers, body: Buffer.concat(chunks) }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

// The form in which Lambda reports what was thrown.
function failure(error) {
  const known = error instanceof Error;
  return {
    errorType: known ? error.name : typeof error,
    errorMessage: known ? error.message : String(error),
    trace: known && error.stack ? error.stack.split("\n") : [],
  };
}

function fail(where, report) {
  console.error("ERROR", "Invoke Error", JSON.stringify(report));
  const headers = { "Content-Type": "application/json", "Lambda-Runtime-Function-Error-Type": report.errorType };
  return call("POST", where, JSON.stringify(report), headers);
}

// What Lambda itself says of a function that cannot be loaded.
function fault(kind, message) {
  const error = new Error(message);
  error.name = "Runtime." + kind;
  return error;
}

async function imported(file) {
  try {
    return await import(pathToFileURL(file));
  } catch (error) {
    if (error instanceof SyntaxError) throw fault("UserCodeSyntaxError", `SyntaxError: ${error.message}`);
    if (/^(ERR_)?MODULE_NOT_FOUND$/.test(error?.code)) throw fault("ImportModuleError", `Error: ${error.message}`);
    throw error;
  }
}

// dir/file.name or dir/file.object.name
async function load(name) {
  const at = name.indexOf(".", name.lastIndexOf("/") + 1);
  if (at < 0) throw fault("MalformedHandlerName", `Bad handler ${name}: not of the form file.function`);
  const base = path.resolve(name.slice(0, at));
  const file = [".mjs", ".js", ".cjs"].map((end) => base + end).find(existsSync);
  if (!file) throw fault("ImportModuleError", `Error: Cannot find module '${path.basename(base)}'`);
  const module = await imported(file);
  const find = (root) => name.slice(at + 1).split(".").reduce((value, key) => value?.[key], root);
  const handler = find(module) ?? find(module.default);
  if (typeof handler !== "function") throw fault("HandlerNotFound", `${name} is undefined or not exported`);
  return handler;
}

let current = ""; // the id of the request that is being handled

function contextOf(headers) {
  const deadline = Number(headers["lambda-runtime-deadline-ms"]);
  const client = headers["lambda-runtime-client-context"];
  return {
    awsRequestId: current,
    invokedFunctionArn: headers["lambda-runtime-invoked-function-arn"],
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    callbackWaitsForEmptyEventLoop: true,
    clientContext: client ? JSON.parse(client) : undefined,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
  };
}

function run(handler, event, context) {
  return new Promise((resolve, reject) => {
    const callback = (error, result) => (error ? reject(error) : resolve(result));
    const returned = handler(event, context, callback);
    if (typeof returned?.then === "function") returned.then(resolve, reject);
    else if (handler.length < 3) resolve(returned);
  });
}

async function serve(handler) {
  const { headers, body } = await call("GET", "/invocation/next");
  current = headers["lambda-runtime-aws-request-id"];
  process.env._X_AMZN_TRACE_ID = headers["lambda-runtime-trace-id"] ?? "";
  const request = `/invocation/${current}`;
  let reply;
  try {
    const result = await run(handler, JSON.parse(body), contextOf(headers));
    reply = JSON.stringify(result ?? null);
  } catch (error) {
    await fail(request + "/error", failure(error));
    return;
  } finally {
    current = "";
  }
  await call("POST", request + "/response", reply, { "Content-Type": "application/json" });
}

for (const [event, type] of [["uncaughtException", "Runtime.UncaughtException"], ["unhandledRejection", "Runtime.UnhandledPromiseRejection"]]) {
  process.on(event, async (error) => {
    const report = { ...failure(error), errorType: type };
    agent.maxSockets = 2; // the one connection may be busy
    await fail(current ? `/invocation/${current}/error` : "/init/error", report);
    process.exit(128);
  });
}

let handler;
try {
  handler = await load(process.env._HANDLER);
} catch (error) {
  await fail("/init/error", failure(error));
  process.exit(1);
}
for (;;) await serve(handler);
