# Retries for hours or days behind a function that is invoked asynchronously. The
# same as ../sam/template.yaml, with the same values.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.70, < 7.0"
    }
  }
}

locals {
  # A queue's visibility timeout is six times its function's timeout, as AWS
  # recommends. In direct mode the handler waits for the functions, and the limit is
  # Lambda's own.
  modes = {
    envelope = { timeout = 60, visibility_timeout = 360, batch_size = 10 }
    direct   = { timeout = 900, visibility_timeout = 5400, batch_size = 1 }
  }
  mode = local.modes[var.mode]
}

data "aws_partition" "current" {}
data "aws_region" "current" {}
data "aws_caller_identity" "current" {}

# Messages that are given up, with the reason in their attributes.
resource "aws_sqs_queue" "dead_letter" {
  name                      = "${var.name}-dead-letters"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

# 50 receives are left for crashes of the handler: it counts attempts itself, and
# sends a message anew long before that.
resource "aws_sqs_queue" "retry" {
  name                       = "${var.name}-queue"
  message_retention_seconds  = 864000 # less than a dead letter's, whose age counts from here
  visibility_timeout_seconds = local.mode.visibility_timeout
  sqs_managed_sse_enabled    = true
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letter.arn
    maxReceiveCount     = 50
  })
}

# Lambda sends to the destination with the permissions of the function's role.
data "aws_iam_policy_document" "destination" {
  statement {
    sid       = "Destination"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.retry.arn]
  }
}

resource "aws_iam_policy" "destination" {
  name        = "${var.name}-destination"
  description = "Lets an asynchronous function send its failures to the retry queue"
  policy      = data.aws_iam_policy_document.destination.json
}

resource "aws_iam_role_policy_attachment" "destination" {
  count      = var.function_role_name == "" ? 0 : 1
  role       = var.function_role_name
  policy_arn = aws_iam_policy.destination.arn
}

resource "aws_lambda_function_event_invoke_config" "function" {
  depends_on                   = [aws_iam_role_policy_attachment.destination]
  function_name                = var.function_name
  qualifier                    = "$LATEST"
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 21600
  destination_config {
    on_failure {
      destination = aws_sqs_queue.retry.arn
    }
  }
}

resource "aws_lambda_function" "handler" {
  function_name    = "${var.name}-handler"
  filename         = var.package
  source_code_hash = filebase64sha256(var.package)
  handler          = "bootstrap"
  runtime          = "provided.al2023"
  architectures    = [var.architecture]
  memory_size      = 128
  timeout          = local.mode.timeout
  role             = aws_iam_role.handler.arn
  depends_on       = [aws_iam_role_policy.handler]
  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.handler.name
  }
  environment {
    variables = {
      MODE                  = var.mode
      TARGET_TIMEOUT        = var.mode == "direct" ? tostring(var.target_timeout) : ""
      BASE_BACKOFF          = var.base_backoff
      MAX_RETRIES           = var.max_retries
      MAX_AGE               = var.max_age
      RETRY_POLICY          = var.retry_policy
      RETRY_CONFIG          = length(var.retry_config) == 0 ? "" : jsonencode({ functions = var.retry_config })
      REPRISE_SIGNING_KEYS  = var.signing_keys
      DEAD_LETTER_QUEUE_URL = aws_sqs_queue.dead_letter.url
      IDEMPOTENCY_TABLE     = var.idempotency ? aws_dynamodb_table.idempotency[0].name : ""
    }
  }
}

# Lambda takes retries for a recursive loop, and stops it after 16 rounds. These retries
# end by the policy. The function needs the same, which it sets itself.
resource "aws_lambda_function_recursion_config" "handler" {
  function_name  = aws_lambda_function.handler.function_name
  recursive_loop = "Allow"
}

resource "aws_lambda_event_source_mapping" "retries" {
  event_source_arn        = aws_sqs_queue.retry.arn
  function_name           = aws_lambda_function.handler.arn
  batch_size              = local.mode.batch_size
  function_response_types = ["ReportBatchItemFailures"]
  scaling_config {
    maximum_concurrency = var.maximum_concurrency
  }
}

resource "aws_cloudwatch_log_group" "handler" {
  name              = "/aws/lambda/${var.name}-handler"
  retention_in_days = var.log_retention_days
}

resource "aws_dynamodb_table" "idempotency" {
  count        = var.idempotency ? 1 : 0
  name         = "${var.name}-idempotency"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "id"
  attribute {
    name = "id"
    type = "S"
  }
  ttl {
    attribute_name = "expiration"
    enabled        = true
  }
}
