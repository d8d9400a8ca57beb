variable "name" {
  description = "Name of the stack."
  type        = string
  default     = "plimsoll"
}

variable "template" {
  description = "Path of the template that `sam package` wrote."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket of this region that takes the template."
  type        = string
}

variable "parameters" {
  description = "Parameters of the stack that differ from their defaults, for example { Size = \"small\" }."
  type        = map(string)
  default     = {}
}

variable "clusters" {
  description = "Names of the EKS clusters of this account and region that the functions may reach."
  type        = set(string)
  default     = []
}

variable "auto_scaling_groups" {
  description = "Name of an Auto Scaling group -> what it permits: grow, renew or complete."
  type        = map(set(string))
  default     = {}

  validation {
    condition     = alltrue([for tag in flatten([for tags in var.auto_scaling_groups : tolist(tags)]) : contains(["grow", "renew", "complete"], tag)])
    error_message = "An Auto Scaling group permits grow, renew or complete."
  }
}

variable "karpenter_queues" {
  description = "Cluster -> URL of its Karpenter's interruption queue, whose messages are delayed by 15 s."
  type        = map(string)
  default     = {}
}

variable "tags" {
  description = "Tags of the stack and the access entries."
  type        = map(string)
  default     = {}
}
