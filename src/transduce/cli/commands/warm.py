"""transduce warm: compile the numerical code ahead, so that the first fit on a machine is as fast as later ones."""

import click


@click.command(short_help="Compile the numerical code ahead of the first fit.")
@click.option("--all", "every", is_flag=True, help="All losses, and classes in a tree; takes a few minutes.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
def warm(every: bool, quiet: bool) -> None:
    """Compile the numerical code ahead of the first fit.

    The first fit on a machine compiles what it needs, which takes about half a minute, and stores it for later.
    Run this once after an installation, for example in a Dockerfile.
    """
    from transduce.warm import summary
    from transduce.warm import warm as compile_kernels

    done = compile_kernels(
        every=every, report=None if quiet else lambda each: print(f"{each.name}: {each.seconds:.1f} s", flush=True)
    )
    if not quiet:
        print(summary(done))
