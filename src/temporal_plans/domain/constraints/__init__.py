"""Rules that allow or refuse something: their shape and their evaluation.

The rules themselves stand with their subject: which plan may start in ``owners.admission``.
"""
