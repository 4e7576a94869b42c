"""Draws what `tidemill-bench scan --json` says ran when, for the fewest and the most streams it has, as an SVG.

    tidemill-bench scan --device cuda --streams 1,12 --json > scan.json
    python scan_timeline.py scan.json scan-timeline.svg
"""

import json
import sys

COLORS = {"upload": "#4c78a8", "kernel": "#f58518", "download": "#54a24b"}
WIDTH, LEFT, ROW, GAP = 900, 90, 14, 34


def main():
    """Reads the measurement, writes the picture."""
    given = json.load(open(sys.argv[1], encoding="utf-8"))
    lines = sorted(given["streams"], key=lambda line: line["streams"])
    lines = [lines[0], lines[-1]]
    longest = max(end for line in lines for *_, end in shifted(line))
    scale, at, out = (WIDTH - LEFT - 10) / longest, 20, []
    for line in lines:
        spans = shifted(line)
        streams = sorted({stream for _, stream, _, _ in spans})
        title = f"{line['streams']} stream{'s' if line['streams'] > 1 else ''}: {max(s[3] for s in spans):.1f} ms on the device"
        out.append(f'<text x="4" y="{at}">{title}</text>')
        at += 8
        for row, stream in enumerate(streams):
            y = at + row * ROW
            out.append(f'<text x="4" y="{y + 10}">stream {stream}</text>')
            for stage, of, begin, end in spans:
                if of == stream:
                    x, width = LEFT + begin * scale, max((end - begin) * scale, 1.0)
                    out.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 3}" fill="{COLORS[stage]}"/>')
        at += len(streams) * ROW + GAP
    for number, (stage, color) in enumerate(COLORS.items()):
        x = LEFT + number * 110
        out.append(f'<rect x="{x}" y="{at - 20}" width="10" height="10" fill="{color}"/><text x="{x + 14}" y="{at - 11}">{stage}</text>')
    style = 'font-family="sans-serif" font-size="11" fill="#333"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {at}" {style}>'
    paper = f'<rect width="{WIDTH}" height="{at}" fill="#fff"/>'
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join([head, paper, *out, "</svg>"]) + "\n")


def shifted(line):
    """Spans whose first one begins at 0."""
    first = min(begin for _, _, begin, _ in line["spans"])
    return [(stage, stream, begin - first, end - first) for stage, stream, begin, end in line["spans"]]


if __name__ == "__main__":
    main()
