"""Tables: what people read where a program reads JSON. Bars, colours, and sentences in a line.

Enters: turns, plans, receipts and the rows and sums of views. Leaves: lines on the console.
May not enter: sums of their own (they are in views), stores, providers, what was typed on the command line.
"""
