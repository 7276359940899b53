import { Duration, RemovalPolicy, SecretValue } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import * as sns from 'aws-cdk-lib/aws-sns';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';

/** What is retried, how often and for how long. Only functions and code must be set. */
export interface RetriesProps {
  /**
   * The functions to retry. The construct configures their asynchronous invocation: no
   * retries by Lambda itself, and the retry queue as the destination on failure.
   */
  readonly functions: lambda.IFunction[];
  /** The handler's binary, such as Code.fromAsset('bin/functions/arm64/retryhandler') after make functions. */
  readonly code: lambda.Code;
  /**
   * envelope: retries are invoked asynchronously, in an envelope that the function opens.
   * direct: synchronously, without one. Default: envelope.
   */
  readonly mode?: 'envelope' | 'direct';
  /** Direct mode: the longest timeout of the functions. Default: 60 s. */
  readonly targetTimeout?: Duration;
  /** The first wait. Before the n-th retry it is between this and 2^(n-1) times as long. Default: 1 s. */
  readonly baseBackoff?: Duration;
  /** Runs after the first one. Default: unlimited. */
  readonly maxRetries?: number;
  /** How long after the first failure an event is retried. Default: 24 h. */
  readonly maxAge?: Duration;
  /** Instead of those three a policy, like exponential(base=2s,max=1h) jitter=full attempts=10 age=12h. */
  readonly retryPolicy?: string;
  /** Policies by function: its name or ARN, and such a text. */
  readonly retryConfig?: Record<string, string>;
  /**
   * Keys that sign retries and dead letters, each as ID:SECRET, one a line, such as
   * SecretValue.secretsManager('retry-keys'). The handler then ignores what others write
   * about a retry. Default: none.
   */
  readonly signingKeys?: SecretValue;
  /** Whether a table keeps what has been invoked, so that a crash of the handler hardly ever repeats an invocation. Default: false. */
  readonly idempotency?: boolean;
  /** How many invocations of the handler run at once. Default: 10. */
  readonly maximumConcurrency?: number;
  /** Of the handler's binary. Default: arm64. */
  readonly architecture?: lambda.Architecture;
  /** How long the handler's logs are kept. Default: 30 days. */
  readonly logRetention?: logs.RetentionDays;
  /** Who is told of alarms. Default: nobody. */
  readonly alarmTopic?: sns.ITopic;
}

/**
 * A queue's visibility timeout is six times its function's timeout, as AWS recommends. In
 * direct mode the handler waits for the functions, and the limit is Lambda's own.
 */
const modes = {
  envelope: { timeout: Duration.seconds(60), visibilityTimeout: Duration.seconds(360), batchSize: 10 },
  direct: { timeout: Duration.seconds(900), visibilityTimeout: Duration.seconds(5400), batchSize: 1 },
};

/** Retries of asynchronous functions, with backoff and jitter, for hours or days. */
export class Retries extends Construct {
  /** Where retries wait, hidden until they are due. */
  readonly retryQueue: sqs.Queue;
  /** What is given up, with the reason in the attributes. */
  readonly deadLetterQueue: sqs.Queue;
  /** Invokes the functions again. */
  readonly handler: lambda.Function;

  constructor(scope: Construct, id: string, props: RetriesProps) {
    super(scope, id);
    const mode = props.mode ?? 'envelope';
    const { timeout, visibilityTimeout, batchSize } = modes[mode];

    this.deadLetterQueue = new sqs.Queue(this, 'DeadLetterQueue', {
      retentionPeriod: Duration.days(14),
      encryption: sqs.QueueEncryption.SQS_MANAGED,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    // 50 receives are left for crashes of the handler: it counts attempts itself, and
    // sends a message anew long before that.
    this.retryQueue = new sqs.Queue(this, 'RetryQueue', {
      retentionPeriod: Duration.days(10), // less than a dead letter's, whose age counts from here
      visibilityTimeout,
      encryption: sqs.QueueEncryption.SQS_MANAGED,
      deadLetterQueue: { queue: this.deadLetterQueue, maxReceiveCount: 50 },
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const table = props.idempotency ? this.idempotencyTable() : undefined;
    const logGroup = new logs.LogGroup(this, 'RetryHandlerLogs', {
      retention: props.logRetention ?? logs.RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.handler = new lambda.Function(this, 'RetryHandler', {
      code: props.code,
      handler: 'bootstrap',
      runtime: lambda.Runtime.PROVIDED_AL2023,
      architecture: props.architecture ?? lambda.Architecture.ARM_64,
      memorySize: 128,
      timeout,
      // Lambda takes retries for a recursive loop, and stops it after 16 rounds. These retries
      // end by the policy. The functions need the same.
      recursiveLoop: lambda.RecursiveLoop.ALLOW,
      logGroup,
      role: this.role(props.functions, logGroup, table),
      environment: settings(mode, props, this.deadLetterQueue, table),
    });
    new lambda.EventSourceMapping(this, 'Retries', {
      target: this.handler,
      eventSourceArn: this.retryQueue.queueArn,
      batchSize,
      reportBatchItemFailures: true,
      maxConcurrency: props.maximumConcurrency ?? 10,
    });
    props.functions.forEach((f, i) => this.retry(f, `AsynchronousInvocation${i}`));
    this.alarms(props);
  }

  /** Makes the retry queue the destination of the function's failures. Lambda sends there in the name of the function's role. */
  private retry(target: lambda.IFunction, id: string) {
    const { policyDependable } = target.grantPrincipal.addToPrincipalPolicy(allow('Destination', ['sqs:SendMessage'], [this.retryQueue.queueArn]));
    const config = new lambda.EventInvokeConfig(this, id, {
      function: target,
      retryAttempts: 0,
      maxEventAge: Duration.hours(6),
      onFailure: { bind: () => ({ destination: this.retryQueue.queueArn }) },
    });
    if (policyDependable) {
      config.node.addDependency(policyDependable);
    }
  }

  /** The handler's role, with what it needs and no more. */
  private role(functions: lambda.IFunction[], logGroup: logs.LogGroup, table?: dynamodb.Table): iam.Role {
    const statements = [
      allow('RetryQueue', ['sqs:ChangeMessageVisibility', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes', 'sqs:ReceiveMessage', 'sqs:SendMessage'], [this.retryQueue.queueArn]),
      allow('DeadLetterQueue', ['sqs:GetQueueAttributes', 'sqs:SendMessage'], [this.deadLetterQueue.queueArn]),
      allow('Function', ['lambda:InvokeFunction'], functions.flatMap((f) => [f.functionArn, `${f.functionArn}:*`])),
      allow('Logs', ['logs:CreateLogStream', 'logs:PutLogEvents'], [logGroup.logGroupArn]),
    ];
    if (table) {
      statements.push(allow('IdempotencyTable', ['dynamodb:DeleteItem', 'dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'], [table.tableArn]));
    }
    return new iam.Role(this, 'RetryHandlerRole', {
      assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com'),
      inlinePolicies: { RetryHandler: new iam.PolicyDocument({ statements }) },
    });
  }

  private idempotencyTable(): dynamodb.Table {
    return new dynamodb.Table(this, 'IdempotencyTable', {
      partitionKey: { name: 'id', type: dynamodb.AttributeType.STRING },
      billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
      timeToLiveAttribute: 'expiration',
      removalPolicy: RemovalPolicy.DESTROY,
    });
  }

  private alarms(props: RetriesProps) {
    const alarm = (id: string, alarmDescription: string, metric: cloudwatch.IMetric, threshold: number, evaluationPeriods = 1, datapointsToAlarm?: number) => {
      const made = new cloudwatch.Alarm(this, id, {
        alarmDescription,
        metric,
        threshold,
        evaluationPeriods,
        datapointsToAlarm,
        comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
      });
      if (props.alarmTopic) {
        made.addAlarmAction(new SnsAction(props.alarmTopic));
      }
    };
    const period = Duration.minutes(1);
    // A record that embeds an event and its response can be larger than SQS takes: then
    // only this metric shows the loss.
    props.functions.forEach((f, i) =>
      alarm(`DestinationAlarm${i}`, 'Failures of the function do not reach the retry queue, and are lost', f.metric('DestinationDeliveryFailures', { statistic: 'Sum', period }), 1),
    );
    alarm('DeadLetterAlarm', 'Events were given up. Their dead letters say why', this.deadLetterQueue.metricApproximateNumberOfMessagesVisible({ period }), 1);
    // SQS deletes dead letters after 14 days, unread.
    alarm('DeadLetterAgeAlarm', 'Dead letters are ten days old, and will be deleted in four', this.deadLetterQueue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(5) }), 864000);
    // A record that crashes the handler comes again after the visibility timeout, 6 or 90
    // minutes: the first crash raises the alarm, and the next ones do not raise it anew.
    alarm('HandlerAlarm', 'The retry handler crashes, or runs out of time', this.handler.metricErrors({ period }), 1, 120, 1);
    // Messages of throttled invocations come back after the visibility timeout, so retries are late.
    alarm('ThrottleAlarm', "The retry handler is throttled, by its own concurrency or the account's", this.handler.metricThrottles({ period }), 1, 5);
    // Waiting retries are hidden, and SQS hides no more than 120,000 messages of a queue.
    alarm('InFlightAlarm', 'The retry queue is about to have as many hidden messages as SQS permits', this.retryQueue.metricApproximateNumberOfMessagesNotVisible({ period }), 100000);
  }
}

/** The handler's environment: what is not set is left to its own defaults. */
function settings(mode: string, props: RetriesProps, deadLetterQueue: sqs.Queue, table?: dynamodb.Table): Record<string, string> {
  const seconds = (d?: Duration) => d?.toSeconds().toString();
  const all: Record<string, string | undefined> = {
    MODE: mode,
    TARGET_TIMEOUT: mode === 'direct' ? seconds(props.targetTimeout ?? Duration.seconds(60)) : undefined,
    BASE_BACKOFF: seconds(props.baseBackoff),
    MAX_RETRIES: props.maxRetries?.toString(),
    MAX_AGE: seconds(props.maxAge),
    RETRY_POLICY: props.retryPolicy,
    RETRY_CONFIG: props.retryConfig && JSON.stringify({ functions: props.retryConfig }),
    REPRISE_SIGNING_KEYS: props.signingKeys?.unsafeUnwrap(), // in the template: a reference to the secret
    DEAD_LETTER_QUEUE_URL: deadLetterQueue.queueUrl,
    IDEMPOTENCY_TABLE: table?.tableName,
  };
  return Object.fromEntries(Object.entries(all).filter((e): e is [string, string] => e[1] !== undefined));
}

function allow(sid: string, actions: string[], resources: string[]): iam.PolicyStatement {
  return new iam.PolicyStatement({ sid, actions, resources });
}
