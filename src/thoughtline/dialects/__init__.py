"""Pure, two-way codecs, one per API shape; see `base` for what each of them can do."""
