# Exactly the permissions that the handler needs.
resource "aws_iam_role" "handler" {
  name               = "${var.name}-handler"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

resource "aws_iam_role_policy" "handler" {
  name   = "RetryHandler"
  role   = aws_iam_role.handler.id
  policy = data.aws_iam_policy_document.handler.json
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

locals {
  function_arn = "arn:${data.aws_partition.current.partition}:lambda:${data.aws_region.current.name}:${data.aws_caller_identity.current.account_id}:function:${var.function_name}"
}

data "aws_iam_policy_document" "handler" {
  statement {
    sid = "RetryQueue"
    actions = [
      "sqs:ChangeMessageVisibility",
      "sqs:DeleteMessage",
      "sqs:GetQueueAttributes",
      "sqs:ReceiveMessage",
      "sqs:SendMessage",
    ]
    resources = [aws_sqs_queue.retry.arn]
  }
  statement {
    sid       = "DeadLetterQueue"
    actions   = ["sqs:GetQueueAttributes", "sqs:SendMessage"]
    resources = [aws_sqs_queue.dead_letter.arn]
  }
  statement {
    sid       = "Function"
    actions   = ["lambda:InvokeFunction"]
    resources = [local.function_arn, "${local.function_arn}:*"]
  }
  dynamic "statement" {
    for_each = length(var.other_function_arns) == 0 ? [] : [var.other_function_arns]
    content {
      sid       = "OtherFunctions"
      actions   = ["lambda:InvokeFunction"]
      resources = statement.value
    }
  }
  dynamic "statement" {
    for_each = aws_dynamodb_table.idempotency
    content {
      sid       = "IdempotencyTable"
      actions   = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
      resources = [statement.value.arn]
    }
  }
  statement {
    sid       = "Logs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.handler.arn}:*"]
  }
}
