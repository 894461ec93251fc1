"""Pages of the API reference: one for each public module and one for each of its classes and functions."""

import inspect
from importlib import import_module
from pathlib import Path

import inventories

LINKED_TYPES = ("class", "exception", "function", "method")


def public_names(module):
    """Return the names in `__all__`, or else the classes and functions that the module defines."""
    names = getattr(module, "__all__", None)
    if names is None:
        own = {name: getattr(value, "__module__", None) == module.__name__ for name, value in vars(module).items()}
        names = [name for name, is_own in own.items() if is_own and not name.startswith("_")]
    return sorted(names, key=str.lower)


def members(cls):
    """Return the public methods and properties that this package defines, without those of scikit-learn and Python."""
    found = []
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        function = getattr(member, "fget", getattr(member, "__func__", getattr(member, "fn", member)))
        is_ours = str(getattr(function, "__module__", "")).startswith("transduce")
        if not name.startswith("_") and is_ours and inspect.isfunction(function) and function.__doc__:
            found.append(name)
    return found


def aliases(modules):
    """Return the full name of each public class by its own name, for the types of parameters."""
    found = {}
    for module in map(import_module, reversed(modules)):
        classes = [name for name in public_names(module) if inspect.isclass(getattr(module, name))]
        found |= {name: f"{module.__name__}.{name}" for name in classes}
        found |= {f"{module.__name__}.{name}": f"{module.__name__}.{name}" for name in classes}
    return found


def write(modules, folder):
    """Write the pages to the folder; pages that are as before are not touched, and others are removed."""
    pages = {}
    for module in map(import_module, modules):
        names = public_names(module)
        pages[module.__name__] = _module_page(module, names)
        pages |= {f"{module.__name__}.{name}": _object_page(module, name) for name in names}
    pages["index"] = _index_page(modules)
    folder.mkdir(parents=True, exist_ok=True)
    for path in set(folder.glob("*.rst")) - {folder / f"{name}.rst" for name in pages}:
        path.unlink()
    for name, text in pages.items():
        _write_if_changed(folder / f"{name}.rst", text)


def _write_if_changed(path: Path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _title(text):
    return f"{text}\n{'=' * len(text)}\n\n"


def _module_page(module, names):
    full = [f"{module.__name__}.{name}" for name in names]
    return (
        _title(module.__name__)
        + f".. module:: {module.__name__}\n\n{_summary(module)}\n\n"
        + "\n".join([".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name in names)])
        + "\n\n"
        + "\n".join([".. toctree::", "   :hidden:", "", *(f"   {name.split('.')[-1]} <{name}>" for name in full)])
        + "\n"
    )


def _index_page(modules):
    lines = ["Everything listed here is public. All other names may change without notice.", ""]
    lines += [".. toctree::", "   :hidden:", "", *(f"   {name}" for name in modules), "", ".. list-table::", ""]
    lines += [f"   * - :doc:`{name} <{name}>`\n     - {_summary(import_module(name))}" for name in modules]
    return _title("Python") + "\n".join(lines) + "\n"


def _summary(module):
    return inspect.getdoc(module).split("\n\n")[0].replace("\n", " ")


def _object_page(module, name):
    value, lines = getattr(module, name), [f".. currentmodule:: {module.__name__}", ""]
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        lines += [f".. {kind}:: {name}", *([f"   :members: {', '.join(found)}"] if (found := members(value)) else [])]
    else:
        lines += [f".. {'autofunction' if callable(value) else 'autodata'}:: {name}"]
        lines += [] if callable(value) else ["   :no-value:"]
    return _title(name) + "\n".join(lines) + "\n"


def resolve(app, env, node, contnode):
    """Link `docs/scale.md` to the page, and `Loss.value` to the one public object whose full name ends so."""
    from sphinx.util.nodes import make_refnode  # the pages themselves are written without Sphinx

    target = node.get("reftarget", "")
    page = target.removeprefix("docs/").removesuffix(".md")
    if target == f"docs/{page}.md" and page in env.found_docs:
        return make_refnode(app.builder, node["refdoc"], page, "", contnode)
    if node.get("refdomain") != "py" or not (target[:1].isupper() or "." in target):
        return None
    objects = env.domains["py"].objects
    ends = [n for n in objects if n.endswith(f".{target}") and objects[n].objtype in LINKED_TYPES]
    shortest = [name for name in ends if name.count(".") == min(end.count(".") for end in ends)]
    if len(shortest) != 1:
        return None
    entry = objects[shortest[0]]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, shortest[0])


def link_literals(app, doctree, docname):
    """Link `transduce.plots`, `TextClassifier(features="tfidf")` or `LabelSpreading` in a page to its reference."""
    from docutils import nodes

    if docname.startswith("reference/generated/"):
        return
    for node in list(doctree.findall(nodes.literal)):
        target = _target(app, docname, node, node.astext().partition("(")[0])
        if target is not None and not isinstance(node.parent, nodes.reference | nodes.title):
            node.replace_self(target)


def _target(app, docname, node, name):
    """Return a link around the node to the public object of this name, here or in scikit-learn; None without one."""
    from docutils import nodes
    from sphinx.util.nodes import make_refnode

    objects = app.env.domains["py"].objects
    entry = objects.get(name) or objects.get(f"transduce.{name}")
    if entry is not None:
        return make_refnode(app.builder, docname, entry.docname, entry.node_id, node.deepcopy(), name)
    if name in inventories.URLS:
        return nodes.reference("", "", node.deepcopy(), internal=False, refuri=inventories.URLS[name])
    return None
