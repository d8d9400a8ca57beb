"""The pages under docs/reference, made from the code: `python -m plimsoll_cli.references`."""
