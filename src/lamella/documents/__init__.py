"""Documents: write the document of a workflow as a file, and read references from bibliographies.

``export`` writes docx, pdf, html, LaTeX and Markdown with Pandoc and Typst. ``pandoc`` runs Pandoc, and ``syntax_tree`` puts
figures, tables, numbers and cross references into what it has read. ``bibliography`` reads BibTeX, RIS and CSL-JSON, and
looks up DOIs. ``styles`` has citation styles, ``templates`` what a page looks like.
"""
