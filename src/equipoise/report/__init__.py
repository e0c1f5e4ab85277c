"""Scores and curves as one self-contained HTML file, Markdown, LaTeX or CSV."""
