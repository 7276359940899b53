// Retries behind one function that exists already:
//
//   npx cdk deploy -c function=orders -c role=orders-role -c mode=envelope
//
// In an app of your own, use the construct and give it your functions.
import * as path from 'path';
import { App, ArnFormat, DefaultStackSynthesizer, Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { Retries } from '../lib/retries';

const app = new App();
const stack = new Stack(app, 'Retries', { synthesizer: new DefaultStackSynthesizer({ generateBootstrapVersionRule: false }) });
const name: string = app.node.tryGetContext('function') ?? 'orders';
const role: string | undefined = app.node.tryGetContext('role');
const code: string = app.node.tryGetContext('code') ?? path.join(__dirname, '../../../bin/functions/arm64/retryhandler');

new Retries(stack, 'Retries', {
  functions: [
    lambda.Function.fromFunctionAttributes(stack, 'Function', {
      functionArn: stack.formatArn({ service: 'lambda', resource: 'function', resourceName: name, arnFormat: ArnFormat.COLON_RESOURCE_NAME }),
      role: role ? iam.Role.fromRoleName(stack, 'FunctionRole', role) : undefined,
      sameEnvironment: true,
    }),
  ],
  code: lambda.Code.fromAsset(code),
  mode: app.node.tryGetContext('mode') || undefined,
  idempotency: app.node.tryGetContext('idempotency'),
});
