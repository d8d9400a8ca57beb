"""What LocalStack 4.14 lacks where there is no container engine: Lambda as processes, and DynamoDB.

Installed into LocalStack's own environment, never into Plimsoll's.
"""
