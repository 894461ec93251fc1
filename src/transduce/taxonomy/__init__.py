"""Class hierarchies: the tree of classes, and the forms in which users write one."""

from transduce.taxonomy.tree import Taxonomy

__all__ = ["Taxonomy"]
