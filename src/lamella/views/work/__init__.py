"""Work: where staged work stands, as every face shows it.

Enters: values that say where work stands. Leaves: what JSON can say.
May not enter: files, stores, the engine; words for people.
"""
