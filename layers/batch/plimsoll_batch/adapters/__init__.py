"""Files and objects, in the words of the domain."""
