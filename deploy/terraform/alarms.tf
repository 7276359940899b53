locals {
  alarm_actions = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# A record that embeds an event and its response can be larger than SQS takes, and
# the function's role may lack the permission: then only this metric shows the loss.
resource "aws_cloudwatch_metric_alarm" "destination" {
  alarm_name          = "${var.name}-destination"
  alarm_description   = "Failures of the function do not reach the retry queue, and are lost"
  namespace           = "AWS/Lambda"
  metric_name         = "DestinationDeliveryFailures"
  dimensions          = { FunctionName = var.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "dead_letter" {
  alarm_name          = "${var.name}-dead-letters"
  alarm_description   = "Events were given up. Their dead letters say why"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.dead_letter.name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

# SQS deletes dead letters after 14 days, unread.
resource "aws_cloudwatch_metric_alarm" "dead_letter_age" {
  alarm_name          = "${var.name}-dead-letter-age"
  alarm_description   = "Dead letters are ten days old, and will be deleted in four"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateAgeOfOldestMessage"
  dimensions          = { QueueName = aws_sqs_queue.dead_letter.name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  threshold           = 864000
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

# A record that crashes the handler comes again after the visibility timeout, 6 or 90
# minutes: the first crash raises the alarm, and the next ones do not raise it anew.
resource "aws_cloudwatch_metric_alarm" "handler" {
  alarm_name          = "${var.name}-handler"
  alarm_description   = "The retry handler crashes, or runs out of time"
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.handler.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 120
  datapoints_to_alarm = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

# Messages of throttled invocations come back after the visibility timeout, so retries are late.
resource "aws_cloudwatch_metric_alarm" "throttle" {
  alarm_name          = "${var.name}-throttle"
  alarm_description   = "The retry handler is throttled, by its own concurrency or the account's"
  namespace           = "AWS/Lambda"
  metric_name         = "Throttles"
  dimensions          = { FunctionName = aws_lambda_function.handler.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}

# Waiting retries are hidden, and SQS hides no more than 120,000 messages of a queue.
resource "aws_cloudwatch_metric_alarm" "in_flight" {
  alarm_name          = "${var.name}-in-flight"
  alarm_description   = "The retry queue is about to have as many hidden messages as SQS permits"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesNotVisible"
  dimensions          = { QueueName = aws_sqs_queue.retry.name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 100000
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
}
