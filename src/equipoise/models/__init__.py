"""Networks in two parts, body (features) and head; one file per family."""
