"""The page, driven by a real browser. One running pair and one browser serve all of these tests."""
