"""
@pyne
"""

from pynecore.lib import close, high, low, open, plot, request, script, syminfo, ta, volume


@script.indicator("reference")
def main():
    plot(request.security(syminfo.tickerid, "240", close), "pine_close")
    plot(request.security(syminfo.tickerid, "240", open), "pine_open")
    plot(request.security(syminfo.tickerid, "240", high - low), "pine_range")
    plot(request.security(syminfo.tickerid, "240", volume), "pine_volume")
    plot(request.security(syminfo.tickerid, "240", close[1]), "pine_before")
    plot(request.security(syminfo.tickerid, "240", ta.highest(high, 3)), "pine_highest")
    plot(request.security(syminfo.tickerid, "240", ta.sma(close, 5)), "pine_mean")
    plot(request.security(syminfo.tickerid, "D", close), "pine_day")
    plot(request.security("X:B", "60", close), "pine_of")
    plot(request.security("X:B", "60", ta.highest(high, 4)), "pine_of_highest")
