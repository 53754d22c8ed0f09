"""Draws what hvdbench measured: time and bus bandwidth against size, all in one picture.

python3 plot.py RESULTS.json PICTURE.svg     hvdbench --plot runs it so; needs matplotlib
python3 plot.py --check                      only says whether it could
"""

import json
import sys

NAMES = {"allring": "Allring", "openmpi": "Open MPI"}


def pyplot():
    """matplotlib for files; ends the program with one line where there is none."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("--plot needs Python's matplotlib: pip install matplotlib, or allring[plot]")
    matplotlib.use("svg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def series(results):
    """Results by who measured them where, in the order of sizes."""
    lines = {}
    for result in results:
        if result["bytes"] > 0:
            key = (result["impl"], result["buffers"], result["inplace"])
            lines.setdefault(key, []).append(result)
    return {key: sorted(line, key=lambda r: r["bytes"]) for key, line in lines.items()}


def size_name(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g} B"


def draw(document, file):
    plt = pyplot()
    results = document["results"]
    figure, (times, rates) = plt.subplots(1, 2, figsize=(12, 5), constrained_layout=True)
    colours = {}
    for (impl, buffers, in_place), line in series(results).items():
        colour = colours.setdefault((impl, buffers), f"C{len(colours)}")
        name = NAMES.get(impl, impl) + (", arena" if buffers == "arena" else "")
        name += ", in place" if in_place else ""
        style = {"color": colour, "linestyle": "-" if in_place else "--", "marker": "."}
        sizes = [r["bytes"] for r in line]
        times.plot(sizes, [r["time_us"]["median"] for r in line], label=name, **style)
        times.fill_between(
            sizes,
            [r["time_us"]["min"] for r in line],
            [r["time_us"]["max"] for r in line],
            color=colour,
            alpha=0.1,
            linewidth=0,
        )
        rates.plot(sizes, [r["busbw_GBps"] for r in line], label=name, **style)
    if document.get("peer_memory_GBps"):
        rates.axhline(
            document["peer_memory_GBps"], color="grey", linewidth=1, label="reading a peer's memory"
        )
    for axes in (times, rates):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda size, _: size_name(size))
        axes.tick_params(axis="x", rotation=45)
        axes.set_xlabel("size")
        axes.grid(True, alpha=0.3)
        axes.legend()
    times.set_yscale("log")
    times.set_ylabel("time (µs): median, from least to greatest")
    rates.set_ylabel("bus bandwidth (GB/s)")
    collectives = sorted({r["collective"] for r in results})
    hosts = document["hosts"]
    title = f"{', '.join(collectives)}: {document['np']} ranks on {hosts} host{'s' * (hosts != 1)}"
    if "peer" in document:
        title += f"; {document['peer']}"
    figure.suptitle(title)
    figure.savefig(file, format="svg")


def main():
    if sys.argv[1:] == ["--check"]:
        pyplot()
        return
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    draw(document, sys.argv[2])


if __name__ == "__main__":
    main()
