"""One style for all figures: readable in black and white, units on the axes, the same bytes when redrawn."""

import os

# Line styles and markers differ as well as colours, so that a figure still reads in black and white.
COLOURS = ["#1b6ca8", "#d1495b", "#2e933c", "#e08e1b", "#6f4a8e", "#3a3a3a", "#1aa6a6", "#9c6644", "#b5179e", "#8a8a8a"]
LABEL_HEIGHT = 11  # points
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)), (0, (3, 3))]
DASHES += [(0, (9, 2, 3, 2)), (0, (2, 1))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*", "<", "h"]


def subplots(*shape, size=(7.0, 4.2), **options):
    """``matplotlib.pyplot.subplots`` without the pyplot: (figure, axes) in the house style. Imports matplotlib."""
    os.environ.pop("MPLBACKEND", None)  # a notebook hands one down that may not be installed; Agg is what is used here
    import matplotlib
    from cycler import cycler
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(matplotlib.rcParamsDefault)
    matplotlib.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS) + cycler(linestyle=DASHES),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "grid.color": "#e3e3e3",
            "grid.linewidth": 0.6,
            "lines.linewidth": 1.7,
            "legend.frameon": False,
            "legend.fontsize": 9,
            "font.size": 10,
            "savefig.dpi": 144,
            "figure.constrained_layout.use": True,
        }
    )
    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(*shape, **options)


def label_ends(axes):
    """Write each line's label at its right end, in its colour, moved apart where they would overlap."""
    axes.figure.draw_without_rendering()  # settles the height that the labels share
    points = 72 / axes.figure.dpi
    ends = [(line, line.get_xdata()[-1], line.get_ydata()[-1]) for line in axes.get_lines()]
    ends.sort(key=lambda end: end[2])
    heights = [axes.transData.transform((x, y))[1] * points for _, x, y in ends]
    places = list(heights)
    for _ in range(100):  # neighbours that are too close push each other away by the same amount, until none are
        for i in range(1, len(places)):
            lacking = max(0, LABEL_HEIGHT - (places[i] - places[i - 1]))
            places[i - 1] -= lacking / 2
            places[i] += lacking / 2
    for (line, x, y), height, place in zip(ends, heights, places, strict=True):
        style = {"textcoords": "offset points", "va": "center", "color": line.get_color(), "fontsize": 9}
        axes.annotate(line.get_label(), (x, y), (6, place - height), **style)
