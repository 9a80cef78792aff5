"""Whether the tables hold what the registry wrote: each module compares one part of them with the audit trail."""
