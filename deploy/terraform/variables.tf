variable "name" {
  description = "What the queues, the handler and the rest are called, and begin with."
  type        = string
  default     = "retries"
}

variable "function_name" {
  description = "The name of the function to retry. Its configuration for asynchronous invocation becomes this module's."
  type        = string
}

variable "function_role_name" {
  description = "The name of that function's role, which is then permitted to send to the retry queue. Empty: attach the output destination_policy_arn to it."
  type        = string
  default     = ""
}

variable "other_function_arns" {
  description = "ARNs of more functions that the handler may invoke. Set their asynchronous invocation to the outputs yourself."
  type        = list(string)
  default     = []
}

variable "package" {
  description = "The path of a zip file with the handler's binary, bootstrap."
  type        = string
}

variable "mode" {
  description = "envelope: retries are invoked asynchronously, in an envelope that the function opens. direct: synchronously, without one."
  type        = string
  default     = "envelope"
  validation {
    condition     = contains(["envelope", "direct"], var.mode)
    error_message = "The mode is envelope or direct."
  }
}

variable "target_timeout" {
  description = "Direct mode: the longest timeout, in seconds, of the functions that are retried."
  type        = number
  default     = 60
  validation {
    condition     = var.target_timeout >= 1 && var.target_timeout <= 870
    error_message = "The functions' longest timeout is 1 to 870 seconds, 30 less than the handler may run."
  }
}

variable "base_backoff" {
  description = "The first wait, in seconds or like 90s, 10m. Before the n-th retry it is between this and 2^(n-1) times as long. Empty: 1."
  type        = string
  default     = ""
}

variable "max_retries" {
  description = "Runs after the first one. Empty: unlimited."
  type        = string
  default     = ""
}

variable "max_age" {
  description = "How long after the first failure an event is retried, in seconds or like 90m, 36h. Empty: 24h."
  type        = string
  default     = ""
}

variable "retry_policy" {
  description = "Instead of those three a policy, like exponential(base=2s,max=1h) jitter=full attempts=10 age=12h."
  type        = string
  default     = ""
}

variable "retry_config" {
  description = "Policies by function: its name or ARN, and such a text."
  type        = map(string)
  default     = {}
}

variable "signing_keys" {
  description = "Keys that sign retries and dead letters, each as ID:SECRET, one a line. The handler then ignores what others write about a retry. Empty: none."
  type        = string
  default     = ""
  sensitive   = true
}

variable "idempotency" {
  description = "Whether a table keeps what has been invoked, so that a crash of the handler hardly ever repeats an invocation."
  type        = bool
  default     = false
}

variable "maximum_concurrency" {
  description = "How many invocations of the handler run at once, 2 to 1000."
  type        = number
  default     = 10
}

variable "architecture" {
  description = "Of the handler's binary: arm64 or x86_64."
  type        = string
  default     = "arm64"
}

variable "log_retention_days" {
  description = "How long the handler's logs are kept."
  type        = number
  default     = 30
}

variable "alarm_topic_arn" {
  description = "An SNS topic that is told of alarms. Empty: nobody is."
  type        = string
  default     = ""
}
