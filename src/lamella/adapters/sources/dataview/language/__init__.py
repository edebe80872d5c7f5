"""Language: what a query says, and what its expressions come to.

Enters: the text of a query, and records to ask for their fields. Leaves: a parsed query, values, or why it is none.
May not enter: files, the clock, anything that takes longer than its allowance.
"""
