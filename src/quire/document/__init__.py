"""Tasks as text and as a Document. Pure: no files, no clock, no kernel."""
