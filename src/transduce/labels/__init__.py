"""Labels as users write them: missing labels, partial labels, and their encoding as class indices."""
