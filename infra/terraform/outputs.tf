output "stack" {
  description = "Name of the stack, for `plimsoll clusters add --stack`."
  value       = aws_cloudformation_stack.plimsoll.name
}

output "outputs" {
  description = "Outputs of the stack: queues, functions, tables and roles."
  value       = aws_cloudformation_stack.plimsoll.outputs
}
