# The stack of Plimsoll, and what it may do with clusters and node groups of this account and region.
# docs/operate/terraform.md says what is to be done before and after.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

locals {
  roles = ["NoticesRole", "DrainsRole", "SweepRole", "PlacementRole"]
  entries = {
    for pair in setproduct(var.clusters, local.roles) : join("/", pair) => { cluster = pair[0], role = pair[1] }
  }
  tags = merge([
    for group, tags in var.auto_scaling_groups : { for tag in tags : "${group}/${tag}" => { group = group, tag = tag } }
  ]...)
}

# CloudFormation takes a template of this size from S3 only.
resource "aws_s3_object" "template" {
  bucket      = var.bucket
  key         = "${var.name}/${filesha256(var.template)}.yaml"
  source      = var.template
  source_hash = filesha256(var.template)
}

resource "aws_cloudformation_stack" "plimsoll" {
  name         = var.name
  template_url = "https://${aws_s3_object.template.bucket}.s3.${data.aws_region.current.region}.${data.aws_partition.current.dns_suffix}/${aws_s3_object.template.key}"
  parameters   = var.parameters
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
  tags         = var.tags
}

resource "aws_eks_access_entry" "function" {
  for_each          = local.entries
  cluster_name      = each.value.cluster
  principal_arn     = aws_cloudformation_stack.plimsoll.outputs[each.value.role]
  kubernetes_groups = ["plimsoll"]
  type              = "STANDARD"
  tags              = var.tags
}

resource "aws_autoscaling_group_tag" "permission" {
  for_each               = local.tags
  autoscaling_group_name = each.value.group

  tag {
    key                 = "plimsoll.dev/${each.value.tag}"
    value               = "true"
    propagate_at_launch = false
  }
}

# At each apply, because the module that makes the queue sets the delay back.
resource "terraform_data" "karpenter_queue_delay" {
  for_each         = var.karpenter_queues
  triggers_replace = timestamp()

  provisioner "local-exec" {
    command = "aws sqs set-queue-attributes --region ${data.aws_region.current.region} --queue-url ${each.value} --attributes DelaySeconds=15"
  }
}

data "aws_region" "current" {}

data "aws_partition" "current" {}
