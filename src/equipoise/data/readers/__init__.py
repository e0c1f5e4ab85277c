"""One file per dataset or file format."""
