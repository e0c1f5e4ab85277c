"""A user's own code: how it is named, found, identified by its content, loaded and adapted."""
