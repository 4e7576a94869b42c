"""
@pyne
"""

from pynecore.lib import close, hlc3, plot, script, ta, timeframe


@script.indicator("reference")
def main():
    line, direction = ta.supertrend(3.0, 10)
    plot(line, "line")
    plot(direction, "direction")
    plot(ta.vwap(hlc3, timeframe.change("1D")), "vwap")
    plot(ta.vwma(close, 20), "vwma")
