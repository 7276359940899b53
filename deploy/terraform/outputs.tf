output "retry_queue_arn" {
  description = "The on-failure destination for the functions that are retried."
  value       = aws_sqs_queue.retry.arn
}

output "retry_queue_url" {
  description = "Where retries wait."
  value       = aws_sqs_queue.retry.url
}

output "dead_letter_queue_url" {
  description = "Who gets what is given up."
  value       = aws_sqs_queue.dead_letter.url
}

output "destination_policy_arn" {
  description = "For the roles of the functions that are retried."
  value       = aws_iam_policy.destination.arn
}

output "retry_handler_name" {
  description = "The function that retries."
  value       = aws_lambda_function.handler.function_name
}
