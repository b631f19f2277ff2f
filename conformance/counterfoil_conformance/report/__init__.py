"""From events to verdicts to pages: one stream of typed events feeds every reporter."""
